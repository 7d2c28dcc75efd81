"""The command line: one small file a command, and the only room that prints."""
