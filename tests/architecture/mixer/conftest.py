"""What a mixer of a 13-wide model states of one layer, by name and in numbers."""

import pytest

from costcalc.architecture.places import DECODER, At
from costcalc.inventory import Cached, Matmul, Weight, Workload


class Told:
    """parameters, products {name: numbers of the matrix}, states {name: (elements, dtype)}, and FLOPs of scans."""

    def __init__(self, mixer, d_model):
        self.records = list(mixer.records(At("mixer"), d_model, DECODER))
        of_weight = [r for r in self.records if type(r) is Weight]
        self.parameters = {r.path.removeprefix("mixer."): r.parameters for r in of_weight}
        self.states = {
            r.path.removeprefix("mixer."): (r.elements(Workload(new_tokens=11)), r.dtype)
            for r in self.records
            if type(r) is Cached
        }

    def products(self):
        """FLOPs of one token's products with a matrix, halved: as many as the matrix has numbers."""
        of_weight = [r for r in self.records if type(r) is Matmul and r.role == "weight"]
        return {r.path.removeprefix("mixer."): r.flops(Workload()) // 2 for r in of_weight}

    def scans(self, **lengths):
        """Multiply-adds of recurrent work in a pass."""
        workload = Workload(**lengths)
        counted = {}
        for record in self.records:
            if type(record) is Matmul and record.role == "scan" and record.runs(workload):
                counted[record.path.removeprefix("mixer.")] = record.flops(workload) // 2
        return counted


@pytest.fixture
def told():
    return lambda mixer, d_model=13: Told(mixer, d_model)
