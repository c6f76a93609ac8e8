#pragma once
// The addresses at which children connect, one for each device, and whether each of them lives. This class reports at
// once an address that dies (its device is gone, its port or link is down), but an address that comes back only after
// it has lived for a while. This time grows each time that the address goes and comes: each change may move groups, and
// a bad cable must not move them again and again.
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tributary/protocol/descriptor.h"
#include "tributary/transport/channel.h"

namespace tributary::aggregator {

struct ListenPlace {
  Endpoint at;  // address with the port that the system chose
  bool live = false;
  std::string why_not;
  friend bool operator==(const ListenPlace&, const ListenPlace&) = default;
};

struct ListenWays {
  std::function<Result<std::unique_ptr<transport::Listener>>(const Endpoint& at)> open;
  /// Checks that connections can reach this host's address; the error has the reason if they cannot.
  std::function<Status(const std::string& host)> probe;
  /// True if a listener does not outlive its device: it must be opened again when the device is back.
  bool reopens = false;
};

class ListenPlaces {
 public:
  static constexpr transport::Duration kProbePeriod = std::chrono::milliseconds(500);
  static constexpr transport::Duration kStayMin = std::chrono::seconds(2);
  static constexpr transport::Duration kStayMax = std::chrono::seconds(64);
  static constexpr transport::Duration kCalm =
      std::chrono::minutes(10);  // after this time without a failure, stay is kStayMin again

  ListenPlaces(const std::vector<Endpoint>& wanted, ListenWays ways);

  // ---- Calls of the door's thread, or of any thread before it runs
  /// Listens at all addresses. Errc::io with all reasons if it can listen at none; else tick() tries the failed ones
  /// again.
  [[nodiscard]] Status open();
  /// Checks the addresses. Call it often.
  void tick(transport::TimePoint now);

  // ---- Calls of any thread
  [[nodiscard]] std::vector<ListenPlace> all() const;
  /// `call` runs on the door's thread whenever an address has died or come back. After on_change(nullptr) has returned,
  /// `call` does not run.
  void on_change(std::function<void()> call);

 private:
  struct Place {
    ListenPlace shown;
    std::unique_ptr<transport::Listener> listener;
    transport::Duration stay = kStayMin;                    // time for which a place must answer to count as live
    std::optional<transport::TimePoint> back_since, since;  // start of the answers; time when the place became live
  };
  [[nodiscard]] Status listen_at(Place& place);
  void look_at(Place& place, transport::TimePoint now);
  void dies(Place& place, const std::string& why, transport::TimePoint now);
  void lives(Place& place, transport::TimePoint now);
  void show(Place& place, bool live, const std::string& why_not);

  const ListenWays ways_;
  std::vector<Place> places_;  // only the door's thread writes this list
  transport::TimePoint next_probe_{};
  bool changed_ = false;
  mutable std::mutex mutex_;  // guards `shown` of places_
  std::mutex call_mutex_;     // guards call_; also held while call_ runs
  std::function<void()> call_;
};

}  // namespace tributary::aggregator
