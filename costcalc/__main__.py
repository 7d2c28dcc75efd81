"""The program: `costcalc`, and `python -m costcalc`."""

import os
import sys


def main() -> None:
    """Everything else is imported in here, so that an interrupt is quiet from the first moment on."""
    # Pydantic would look for plugins in every package that is installed, for which a command has no use: 30 ms.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    try:
        from costcalc.cli.main import run  # noqa: PLC0415
    except KeyboardInterrupt:
        sys.exit(130)  # as costcalc.cli.main has it
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
