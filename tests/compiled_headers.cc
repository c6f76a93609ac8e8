// Nothing: the target of this file only compiles GoogleTest's headers, once for all tests.
