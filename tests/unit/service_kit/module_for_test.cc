// A module of version 1, which module_test.cc loads.
#include "service-kit/module.h"

namespace {
struct Table : tributary::service::ModuleTable {
  int number;
};
}  // namespace

extern "C" [[gnu::visibility("default")]] const Table module_for_test{{"1"}, 42};
