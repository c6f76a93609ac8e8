// The Python side of the extension. Only this file and numerics.cc use the interpreter.
#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>
#include <optional>

#include "backend.h"
#include "error.h"
#include "meeting.h"
#include "numerics.h"
#include "shrink.h"

namespace py = pybind11;

namespace tributary::torch {
namespace {

// The caller does not hold the interpreter's lock. Only the main thread handles signals; in other threads this does
// nothing.
void check_signals() {
  const py::gil_scoped_acquire acquire;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

/// Options of a group, which the groups that are split off it inherit.
struct GroupOptions final : c10d::Backend::Options {
  GroupOptions(std::chrono::milliseconds limit, std::string numerics_word, std::string check_word, bool may_shrink)
      : c10d::Backend::Options("tributary", limit),
        numerics(std::move(numerics_word)),
        check_values(std::move(check_word)),
        shrink(may_shrink) {}

  std::string numerics;
  std::string check_values;
  bool shrink;  // the group prepares itself to go on without lost ranks

  [[nodiscard]] GroupSettings settings() const { return {numerics, check_values}; }
};

/// Ends a wait in the library when a signal comes. Exceptions must not pass through the library.
class SignalWatch {
 public:
  void watch(tributary_config& config) {
    config.still_wanted = [](void* self) { return static_cast<SignalWatch*>(self)->look() ? 1 : 0; };
    config.still_wanted_context = this;
  }
  /// Call it after the wait.
  void raise() const {
    if (stop_) std::rethrow_exception(stop_);
  }

 private:
  bool look() noexcept {
    try {
      check_signals();
    } catch (...) {
      stop_ = std::current_exception();
    }
    return stop_ == nullptr;
  }

  std::exception_ptr stop_;
};

/// True if this version of PyTorch passes a store to Backend::split().
template <class Base>
constexpr bool kSplitsByStore =
    requires(Base& base, const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
             const c10::intrusive_ptr<c10d::Backend::Options>& options) { base.split(store, ranks, options); };

/// If Python drops the last reference, the destructor releases the interpreter's lock before it waits: callbacks of
/// unfinished works may need this lock.
class PythonBackend final : public Backend {
 public:
  PythonBackend(tributary_comm* comm, int rank, int size, c10::intrusive_ptr<GroupOptions> options)
      : Backend(comm, rank, size), options_(std::move(options)) {}
  ~PythonBackend() override {
    if (Py_IsInitialized() == 0 || PyGILState_Check() == 0) return;
    const py::gil_scoped_release release;
    shutdown();
  }

  bool supportsSplitting() const override { return kSplitsByStore<c10d::Backend>; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override {
    return c10::make_intrusive<GroupOptions>(*options_);
  }

  // Not marked as an override, because older versions of PyTorch have no such function. PyTorch calls it once for each
  // type of device, with the same store: the devices share one backend, so the second call returns the first one's.
  virtual c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store>& store,
                                                  const std::vector<int>& ranks,
                                                  const c10::intrusive_ptr<c10d::Backend::Options>& options) {
    const auto mine = std::find(ranks.begin(), ranks.end(), getRank());
    if (mine == ranks.end()) return nullptr;
    if (store.get() == split_store_.get()) {
      if (auto known = split_.lock()) return known;
    }
    const auto* const own = dynamic_cast<const GroupOptions*>(options.get());
    auto wanted = c10::make_intrusive<GroupOptions>(own != nullptr ? *own : *options_);
    wanted->timeout = options->timeout;
    const int rank = static_cast<int>(mine - ranks.begin()), size = static_cast<int>(ranks.size());
    auto made = meet(*store, rank, size, std::move(wanted));
    split_store_ = store;
    split_ = c10::weak_intrusive_ptr<c10d::Backend>(c10::intrusive_ptr<c10d::Backend>(made));
    return made;
  }

  // Not marked as overrides, either.
  virtual bool supportsShrinking() const { return options_->shrink; }
  /// The flags do not matter: what is under way in this group ends with an error, because a rank is lost.
  virtual c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<std::int64_t>& excluded, int /*flags*/,
                                                   const c10::intrusive_ptr<c10d::Backend::Options>& options) {
    const auto* const own = dynamic_cast<const GroupOptions*>(options.get());
    auto wanted = c10::make_intrusive<GroupOptions>(own != nullptr ? *own : *options_);
    const GroupSettings settings = wanted->settings();
    tributary_config config = config_of(settings, wanted->timeout);
    SignalWatch signals;
    signals.watch(config);
    tributary_comm* comm = nullptr;
    try {
      comm = shrink_without({excluded.begin(), excluded.end()}, *this, config);
    } catch (...) {
      signals.raise();
      throw;
    }
    const auto below = std::count_if(excluded.begin(), excluded.end(), [&](auto rank) { return rank < getRank(); });
    return c10::make_intrusive<PythonBackend>(comm, getRank() - static_cast<int>(below),
                                              getSize() - static_cast<int>(excluded.size()), std::move(wanted));
  }

  /// The caller does not hold the interpreter's lock.
  static c10::intrusive_ptr<PythonBackend> meet(c10d::Store& store, int rank, int size,
                                                c10::intrusive_ptr<GroupOptions> options) {
    const GroupSettings settings = options->settings();
    tributary_comm* const comm = Meeting(store, rank, size, options->timeout, settings, &check_signals).meet();
    auto made = c10::make_intrusive<PythonBackend>(comm, rank, size, std::move(options));
    if (made->options_->shrink) prepare_shrink(*made, config_of(settings, made->options_->timeout));
    return made;
  }

 private:
  const c10::intrusive_ptr<GroupOptions> options_;
  c10::intrusive_ptr<c10d::Store> split_store_;  // store of the last split
  c10::weak_intrusive_ptr<c10d::Backend> split_{c10::intrusive_ptr<c10d::Backend>()};
};

c10::intrusive_ptr<c10d::Backend> create(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                                         std::chrono::milliseconds timeout, const std::string& numerics,
                                         const std::string& check_values, bool shrink) {
  const py::gil_scoped_release release;
  return PythonBackend::meet(*store, rank, size,
                             c10::make_intrusive<GroupOptions>(timeout, numerics, check_values, shrink));
}

py::object info(const c10::intrusive_ptr<c10d::Backend>& backend) {
  auto* self = dynamic_cast<Backend*>(backend.get());
  if (self == nullptr) return py::none();
  tributary_info info{};
  info.struct_bytes = sizeof info;
  {
    const py::gil_scoped_release release;
    self->use([&](tributary_comm* comm) { check(tributary_comm_info(comm, &info), "tributary:info"); });
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

/// Sets the numerics of the calling thread's calls: true for exact, false for fast, none for the group's. Returns the
/// choice before.
std::optional<bool> choose_numerics(std::optional<bool> exact) {
  const int before = numerics_of_calls();
  choose_numerics_of_calls(!exact ? 0 : *exact ? TRIBUTARY_OP_EXACT : TRIBUTARY_OP_FAST);
  return before == 0 ? std::nullopt : std::optional(before == TRIBUTARY_OP_EXACT);
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
             py::arg("numerics") = "", py::arg("check_values") = "", py::arg("shrink") = false);
  // torch.distributed returns c10d's Work; pybind11 shows Python its dynamic type, this class.
  py::class_<Work, c10d::Work, c10::intrusive_ptr<Work>>(module, "Work").def("statistics", &statistics);
  // torch.distributed copies the options of a group that it splits. NCCL's backend has perform_nocolor_split() for
  // ranks outside a new group, and torch.distributed calls it on every backend that can split.
  py::class_<GroupOptions, c10d::Backend::Options, c10::intrusive_ptr<GroupOptions>>(module, "GroupOptions")
      .def("__deepcopy__",
           [](const GroupOptions& self, const py::dict&) { return c10::make_intrusive<GroupOptions>(self); })
      .def_readonly("numerics", &GroupOptions::numerics)
      .def_readonly("check_values", &GroupOptions::check_values)
      .def_readonly("shrink", &GroupOptions::shrink);
  py::class_<PythonBackend, c10d::Backend, c10::intrusive_ptr<PythonBackend>>(module, "Backend")
      .def_property_readonly("options", &PythonBackend::getBackendOptions)
      .def("perform_nocolor_split", [](PythonBackend&, const py::object&) {});
  module.def("info", &info, py::arg("backend"));
  module.def("choose_numerics", &choose_numerics, py::arg("exact"));
  module.def("close_all", &Backend::close_all, py::arg("failed"), py::call_guard<py::gil_scoped_release>());
  module.def("library_version", &library_version);
}
