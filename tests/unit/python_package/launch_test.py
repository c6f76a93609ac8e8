"""The variables of each launcher give the rank, the size and rank 0's address.

    launch_test.py FOLDER_OF_THE_PACKAGE
"""

import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
from tributary._launch import Launch, find


class Launches(unittest.TestCase):
    def test_tributary_run_and_torchrun(self) -> None:
        variables = {"RANK": "3", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "head", "MASTER_PORT": "1234"}
        self.assertEqual(find(variables), Launch(3, 8, 1, 2, "head:1234"))

    def test_torchrun_with_a_store_of_its_own_leaves_its_port_alone(self) -> None:
        variables = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "head", "MASTER_PORT": "1234", "TORCHELASTIC_USE_AGENT_STORE": "True"}
        self.assertEqual(find(variables).address, "head:1235")

    def test_all_ranks_on_one_host_need_no_address(self) -> None:
        variables = {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
        self.assertEqual(find(variables), Launch(1, 2, 1, 2, "127.0.0.1:29500"))
        self.assertEqual(find(variables | {"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}).address, "")

    def test_slurm_names_the_first_host(self) -> None:
        variables = {"SLURM_PROCID": "1", "SLURM_NTASKS": "2", "SLURM_LOCALID": "0"}
        for nodes, first in (("gpu[03-07,9],login1", "gpu03"), ("a,b", "a"), ("one", "one"), ("n[1,3]", "n1")):
            self.assertEqual(find(variables | {"SLURM_STEP_NODELIST": nodes}).address, f"{first}:29500")

    def test_no_launcher(self) -> None:
        self.assertIsNone(find({"RANK": "1"}))

    def test_wrong_numbers_are_named(self) -> None:
        for wrong in ({"RANK": "x"}, {"RANK": "2"}, {"RANK": "-1"}, {"WORLD_SIZE": "0"}, {"MASTER_PORT": "none"}):
            with self.assertRaisesRegex(ValueError, next(iter(wrong))):
                find({"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "head"} | wrong)


if __name__ == "__main__":
    unittest.main()
