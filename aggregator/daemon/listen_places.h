#pragma once
// The addresses at which connections come in, one for each device, and which of them live. One that dies (its device is
// gone, its port or link down) is told at once; one that comes back only when it has stayed for a while, and for longer
// the more often it comes and goes: each change may move groups, and a cable that flaps must not move them for ever.
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
  Endpoint at;  // with the port that was chosen
  bool live = false;
  std::string why_not;
  friend bool operator==(const ListenPlace&, const ListenPlace&) = default;
};

struct ListenWays {
  std::function<Result<std::unique_ptr<transport::Listener>>(const Endpoint& at)> open;
  /// Whether connections can come in by this host; the sentence says why not.
  std::function<Status(const std::string& host)> probe;
  /// A listener does not outlive its device: it is opened anew when that is back.
  bool reopens = false;
};

class ListenPlaces {
 public:
  static constexpr transport::Duration kProbePeriod = std::chrono::milliseconds(500);
  static constexpr transport::Duration kStayMin = std::chrono::seconds(2);
  static constexpr transport::Duration kStayMax = std::chrono::seconds(64);
  static constexpr transport::Duration kCalm = std::chrono::minutes(10);  // after which nothing is held against it

  ListenPlaces(const std::vector<Endpoint>& wanted, ListenWays ways);

  // ---- the door's thread, or before there is one
  /// Errc::io with every reason where none can be listened at; the others are tried again later.
  [[nodiscard]] Status open();
  /// Call often.
  void tick(transport::TimePoint now);

  // ---- any thread
  [[nodiscard]] std::vector<ListenPlace> all() const;
  /// Called on the door's thread whenever other ones live than before; nullptr ends that before it returns.
  void on_change(std::function<void()> call);

 private:
  struct Place {
    ListenPlace shown;
    std::unique_ptr<transport::Listener> listener;
    transport::Duration stay = kStayMin;                    // before it counts as back
    std::optional<transport::TimePoint> back_since, since;  // it answers, while it is down; it lives
  };
  [[nodiscard]] Status listen_at(Place& place);
  void look_at(Place& place, transport::TimePoint now);
  void dies(Place& place, const std::string& why, transport::TimePoint now);
  void lives(Place& place, transport::TimePoint now);
  void show(Place& place, bool live, const std::string& why_not);

  const ListenWays ways_;
  std::vector<Place> places_;  // written by the door's thread
  transport::TimePoint next_probe_{};
  bool changed_ = false;
  mutable std::mutex mutex_;  // guards what places_ show
  std::mutex call_mutex_;     // guards call_, and is held while it runs
  std::function<void()> call_;
};

}  // namespace tributary::aggregator
