// This file has no code: its target compiles GoogleTest's headers, once for all tests.
