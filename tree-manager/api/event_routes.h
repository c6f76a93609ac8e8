#pragma once
// GET /v1/events: the cluster's events as a list, or as a stream of server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html).
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "service-kit/http/http_message.h"
#include "tree-manager/service/event_log.h"

namespace tributary::manager {

/// Counts of streams since the start.
struct EventStreamCounts {
  std::uint64_t opened = 0;
  std::uint64_t refused = 0;  // too many were under way
  std::uint64_t slow = 0;     // ended, because their reader did not take the bytes in time
  std::uint64_t events = 0;   // events in streams, once for each reader
  std::uint64_t missed = 0;   // times that a reader was told that it has missed events
};

/// Counts the streams under way, so that no caller takes all of them. Any thread may call it.
class EventStreams {
 public:
  static constexpr std::size_t kStreamsMax = 256;      // most streams of all callers
  static constexpr std::size_t kStrangersMax = 128;    // most streams of callers without a proved name
  static constexpr std::size_t kStreamsOfOneMax = 32;  // most streams of one name, or of one stranger's address

  struct Caller {
    std::string name;
    bool stranger = false;
  };
  /// Returns a place, which is free again when the last copy is gone; nullptr: there is no free place. This object must
  /// outlive the place.
  [[nodiscard]] std::shared_ptr<void> enter(const Caller& caller);
  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] EventStreamCounts counts() const;
  /// Counts what a stream sends: the events that its reader may hear of, and the word that others were missed.
  void count_sent(std::size_t events, bool missed) noexcept;
  void count_slow() noexcept { ++slow_; }

 private:
  void leave(const Caller& caller);

  mutable std::mutex mutex_;  // guards the members below
  std::map<std::string, std::size_t> by_caller_;
  std::size_t count_ = 0, strangers_ = 0;
  std::atomic<std::uint64_t> opened_{0}, refused_{0}, slow_{0}, events_{0}, missed_{0};
};

/// The events that the answering manager can tell.
enum class EventsTold : std::uint8_t {
  as_they_come,   // it leads
  of_the_moment,  // it leads, and another manager passes the answer on: a reader of a stream asks again after a second
  none,           // it does not lead, so it knows of no events: the reader keeps its place, and asks again
};

/// The rights of a caller, and the state of the manager that answers it.
struct EventReader {
  EventStreams::Caller caller;
  std::function<bool(const Event&)> hears;  // the caller may know of this event
  std::function<bool()> goes_on;            // the caller may still listen, and this manager still leads
  EventsTold told = EventsTold::as_they_come;
};

/// The log and `streams` must outlive the answer.
[[nodiscard]] service::HttpReply events_reply(const service::HttpHead& head, const EventLog& log, EventStreams& streams,
                                              EventReader reader);

}  // namespace tributary::manager
