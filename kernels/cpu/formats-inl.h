// Everything that knows a dtype's bits, in order of dependency. Included once per target, inside its namespace.
#include "cpu/lanes-inl.h"
//
#include "cpu/float16-inl.h"
//
#include "cpu/bfloat16-inl.h"
#include "cpu/float8-inl.h"
//
#include "cpu/elements-inl.h"
