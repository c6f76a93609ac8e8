#pragma once
// The mark of a function that programs call in place of MPI's.
#define TRIBUTARY_MPI_ENTRY extern "C" __attribute__((visibility("default")))
