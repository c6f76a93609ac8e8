#include "numerics.h"

#include <ATen/ThreadLocalPythonObjects.h>
#include <torch/csrc/PyInterpreter.h>

#include <memory>
#include <string>

#include "tributary/tributary.h"

namespace tributary::torch {
namespace {

// PyTorch hands these objects on to its threads. A thread_local variable would not do, because a backward pass on a GPU
// calls from a thread of PyTorch.
using Objects = at::impl::ThreadLocalPythonObjects;

const std::string& key() {
  static const std::string name = "tributary.numerics";
  return name;
}

}  // namespace

// The objects are three that Python has once, so their addresses tell them apart, without the interpreter's lock.
int numerics_of_calls() {
  if (!Objects::contains(key())) return 0;
  const PyObject* const chosen = Objects::get(key())->ptr(getPyInterpreter());
  return chosen == Py_True ? TRIBUTARY_OP_EXACT : chosen == Py_False ? TRIBUTARY_OP_FAST : 0;
}

void choose_numerics_of_calls(int flag) {
  PyObject* const chosen = flag == TRIBUTARY_OP_EXACT ? Py_True : flag == TRIBUTARY_OP_FAST ? Py_False : Py_None;
  Py_INCREF(chosen);  // the SafePyObject owns this reference
  Objects::set(key(), std::make_shared<c10::SafePyObject>(chosen, getPyInterpreter()));
}

}  // namespace tributary::torch
