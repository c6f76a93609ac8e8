// The Python side of the extension. Only this file uses the interpreter.
#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/utils/pybind.h>

#include "backend.h"
#include "meeting.h"

namespace py = pybind11;

namespace tributary::torch {
namespace {

/// If Python drops the last reference, the destructor releases the interpreter's lock before it waits: callbacks of
/// unfinished works may need this lock.
class PythonBackend final : public Backend {
 public:
  using Backend::Backend;
  ~PythonBackend() override {
    if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return;
    const py::gil_scoped_release release;
    shutdown();
  }
};

// The caller does not hold the interpreter's lock. Only the main thread handles signals; in other threads this does
// nothing.
void check_signals() {
  const py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                         std::chrono::milliseconds timeout, const std::string& numerics,
                                         const std::string& check_values) {
  tributary_comm* comm = nullptr;
  {
    const py::gil_scoped_release release;
    comm = Meeting(*store, rank, size, timeout, {numerics, check_values}, &check_signals).meet();
  }
  return c10::make_intrusive<PythonBackend>(comm, rank, size);
}

py::object info(const c10::intrusive_ptr<c10d::Backend>& backend) {
  auto* self = dynamic_cast<Backend*>(backend.get());
  if (self == nullptr) return py::none();
  tributary_info info;
  {
    const py::gil_scoped_release release;
    info = self->info();
  }
  py::dict result;
  const bool in_network = info.path == TRIBUTARY_PATH_IN_NETWORK;
  result["path"] = info.path == TRIBUTARY_PATH_LOCAL ? "local"
                   : info.hosts != 0                 ? (in_network ? "host+tree" : "host+ring")
                                                     : (in_network ? "in-network" : "fallback");
  result["hosts"] = info.hosts;
  result["reason"] = py::str(info.reason);
  result["epoch"] = info.epoch;
  result["lanes"] = info.lanes;
  result["levels"] = info.levels;
  result["window"] = info.window;
  result["segment_bytes"] = info.segment_bytes;
  result["operations"] = info.operations;
  result["bytes_in_network"] = info.bytes_in_network;
  result["bytes_fallback"] = info.bytes_fallback;
  result["bytes_local"] = info.bytes_local;
  result["failovers"] = info.failovers;
  result["returns"] = info.returns;
  result["last_pause_us"] = info.last_pause_us;
  result["longest_pause_us"] = info.longest_pause_us;
  return result;
}

py::dict counts(const tributary_values& values) {
  py::dict result;
  result["elements"] = values.elements;
  result["nans"] = values.nans;
  result["infinities"] = values.infinities;
  result["subnormals"] = values.subnormals;
  return result;
}

py::object statistics(Work& work) {
  const auto found = work.statistics();
  if (!found) return py::none();
  py::dict result;
  result["input"] = counts(found->input);
  result["result"] = counts(found->result);
  const double bound = found->relative_error_bound;
  result["relative_error_bound"] = bound < 0 ? py::object(py::none()) : py::float_(bound);
  return result;
}

std::string library_version() {
  int major = 0, minor = 0, patch = 0;
  tributary_version(&major, &minor, &patch);
  return c10::str(major, ".", minor, ".", patch);
}

}  // namespace
}  // namespace tributary::torch

PYBIND11_MODULE(_C, module) {
  using namespace tributary::torch;
  module.doc() = "The backend of torch.distributed over libtributary; see tributary.torch.";
  module.def("create", &create, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"),
             py::arg("numerics") = "", py::arg("check_values") = "");
  // torch.distributed returns c10d's Work; pybind11 shows Python its dynamic type, this class.
  py::class_<Work, c10d::Work, c10::intrusive_ptr<Work>>(module, "Work").def("statistics", &statistics);
  module.def("info", &info, py::arg("backend"));
  module.def("close_all", &Backend::close_all, py::arg("failed"), py::call_guard<py::gil_scoped_release>());
  module.def("library_version", &library_version);
}
