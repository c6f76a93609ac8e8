#pragma once
// Records traces of the workers' segments, when a client asks for one over HTTP. It records one trace at a time, of
// bounded length, and keeps the last one.
//
//   GET /v1/trace?seconds=2&job=NAME   begins to record, all jobs or one; answers {"trace": 7, "seconds": 2}
//   GET /v1/trace?number=7             returns the trace, once its time is over
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aggregator/daemon/worker_thread.h"
#include "service-kit/http/http_message.h"

namespace tributary::aggregator {

/// One thread at a time uses it.
class TraceRecorder {
 public:
  static constexpr double kSecondsMax = 10;
  /// The most moments that all workers of a process keep.
  static constexpr std::uint32_t kSegmentsMax = 131'072;

  /// `workers` must outlive the recorder.
  TraceRecorder(std::string name, std::string host_id, const std::vector<std::unique_ptr<WorkerThread>>& workers)
      : name_(std::move(name)), host_id_(std::move(host_id)), workers_(workers) {}

  /// Returns the place for each worker's moments.
  [[nodiscard]] static std::uint32_t segments_max_of_worker(std::uint32_t workers) noexcept;
  /// Answers a request by the query of its URL.
  [[nodiscard]] service::HttpReply answer(std::string_view query);

 private:
  /// The children of one lane by number, as JSON.
  struct LaneText {
    std::uint64_t group = 0;
    std::uint32_t epoch = 0, lane = 0;
    std::string text;
    [[nodiscard]] bool same_lane(const LaneText& other) const noexcept {
      return group == other.group && epoch == other.epoch && lane == other.lane;
    }
  };
  [[nodiscard]] service::HttpReply begin(double seconds, const std::string& job);
  [[nodiscard]] service::HttpReply take(std::uint64_t number);
  void note_lanes();
  [[nodiscard]] std::string document();

  const std::string name_, host_id_;
  const std::vector<std::unique_ptr<WorkerThread>>& workers_;
  std::uint64_t number_ = 0;  // of the last trace
  transport::TimePoint until_{};
  std::vector<LaneText> lanes_;  // lanes at the trace's begin or at its end
  std::string taken_;            // document of the last trace, once somebody has asked for it
};

}  // namespace tributary::aggregator
