#pragma once
// Finds this rank's own troubles (tributary/protocol/rank_troubles.h) in the kernel's counters, twice a second: the
// time for which its main thread, or the thread that drives its connections, was ready to run and got no processor, the
// TCP segments that its host sent again, or the packets of its own transport, and the errors of its network devices.
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "tributary/protocol/rank_troubles.h"
#include "tributary/transport/channel.h"

namespace tributary::client {

/// Returns the time for which a thread has been ready to run, and has not run, since it began; nullopt if the kernel
/// does not count it. `schedstat`: a file such as /proc/self/schedstat.
[[nodiscard]] std::optional<transport::Duration> processor_wait(const std::string& schedstat);

/// One thread at a time uses an object.
class OwnTroubles {
 public:
  static constexpr transport::Duration kPeriod = std::chrono::milliseconds(500);
  static constexpr std::uint32_t kAnswersMax = 64;  // each of 16 lanes asks four times
  struct Files {
    std::string main_thread = "/proc/self/schedstat", this_thread = "/proc/thread-self/schedstat";
    std::string tcp = "/proc/self/net/snmp", devices = "/proc/self/net/dev";
  };

  /// Numbers of TCP segments, or of packets.
  struct Segments {
    std::uint64_t sent = 0, sent_again = 0;
  };

  OwnTroubles() : OwnTroubles(Files{}) {}
  explicit OwnTroubles(Files files) : files_(std::move(files)) {}

  /// Reads the counters if a period is over. Returns whether to tell the others current(): while there are troubles,
  /// and once when they are over.
  bool look(transport::TimePoint now);
  /// Returns the troubles of the last second.
  [[nodiscard]] RankTroubles current() const noexcept;
  /// Like current(), and reads the counters, so that the time since the last period counts, too. However often others
  /// ask, it reads four times a second at most; between, it returns what it found before.
  [[nodiscard]] RankTroubles until(transport::TimePoint now);

  /// Questions of aggregators: about this rank, and about ranks of the same host. Many questions of one kind leave those
  /// of the other kind their answers.
  enum class Question : std::uint8_t { word, sighting };
  /// Returns whether to answer one more such question: up to kAnswersMax a second, over all lanes.
  [[nodiscard]] bool may_answer(Question question, transport::TimePoint now) noexcept;

  /// Counts the packets of the rank's transport, too, where it has packets of its own. look() calls the function.
  void also_count(std::function<Segments()> packets) { packets_ = std::move(packets); }

 private:
  struct Counters {
    std::optional<transport::Duration> main_wait, this_wait;
    pid_t this_thread = 0;
    std::optional<Segments> segments;
    std::optional<std::uint64_t> device_errors;
  };
  [[nodiscard]] Counters read() const;
  [[nodiscard]] static std::optional<Segments> segments_in(const std::string& file);
  [[nodiscard]] static RankTroubles between(const Counters& before, const Counters& after, transport::Duration time);

  const Files files_;
  std::function<Segments()> packets_;
  std::optional<transport::TimePoint> read_at_;
  Counters counters_;
  std::array<RankTroubles, 2> last_{};            // of the last period, and of the one before
  std::optional<transport::TimePoint> until_at_;  // time at which until() has read the counters
  RankTroubles since_{};                          // what it found then
  transport::TimePoint answers_since_{};
  std::array<std::uint32_t, 2> answers_{};  // numbers in the second since then, by Question
  bool told_ = false;
};

}  // namespace tributary::client
