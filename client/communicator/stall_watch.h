#pragma once
// Finds out that an operation takes too long, or that ranks have called different operations, and tells rank 0: only
// rank 0 knows the state of all ranks.
//
// Limits, with the time-out T: a rank tells rank 0 a suspicion at 0.7 T at the latest, so that rank 0 learns which
// ranks answer. It reports that the time-out is over at T; the ranks that live then answer at once. If rank 0 itself
// hangs, the rank gives up by itself at T, or at 1.25 T if rank 0 began to hang after it had heard the suspicion.
#include <string>

#include "client/collectives/fallback/peer_mesh.h"
#include "client/communicator/message_queue.h"
#include "client/communicator/operation_queue.h"
#include "client/communicator/whole.h"
#include "client/control/directory.h"

namespace tributary::client {

/// The texts about an operation under way, for people.
class ProgressText {
 public:
  virtual ~ProgressText() = default;
  /// Returns a text such as "operation 3 (barrier), segment 2 of the fallback, which needs rank 5".
  [[nodiscard]] virtual std::string waits_for(const Operation& operation) const = 0;
  /// Returns a number that grows with the progress of the operation.
  [[nodiscard]] virtual std::uint64_t steps(const Operation& operation) const = 0;
  /// Returns the connections between ranks that could not be made so far, as " (...)"; empty if there are none.
  [[nodiscard]] virtual std::string troubles() const = 0;
};

class StallWatch {
 public:
  struct Parts {
    OperationQueue& operations;
    const MessageQueue& messages;
    const ProgressText& text;
    Directory& directory;
  };
  StallWatch(Shared& shared, Parts parts) : shared_(shared), parts_(parts) {}
  /// Watches the connections between ranks from now on.
  void use(const PeerMesh& mesh) noexcept { mesh_ = &mesh; }

  /// Call this at least a few times a second.
  void tick();
  /// Notes that a part of a message has arrived. Messages and collectives make progress separately, so this is no sign
  /// that a collective makes progress.
  void message_arrived() noexcept { messages_progress_at_ = shared_.clock.now(); }
  /// Notes that this rank has told rank 0 that it is done.
  void leaving() noexcept { leaving_since_ = shared_.clock.now(); }
  /// Answers rank 0, which asks for this rank's progress.
  void on_inquiry(const ControlMessage& message);
  /// Reports a frame of a collective that does not match this rank's next receive.
  void on_mismatch(std::uint32_t peer, const PostedReceive& expected, const FrameHeader& arrived);

  /// Returns how long this rank stood still within the time-out.
  [[nodiscard]] transport::Duration away() const;
  /// Returns, for an error's text, "rank 3 stood still for 20 s, and found when it went on: " if this rank stood still
  /// within the time-out; else "". The other ranks may have given up because of this rank, not the other way round.
  [[nodiscard]] std::string stood_still() const;
  /// Returns for how long the operation has made no progress; 0 if it is less than LateInquiry::kAskAfter, without the
  /// time in which this rank itself stood still.
  [[nodiscard]] transport::Duration still_for(const Operation& operation) const;

 private:
  [[nodiscard]] transport::Duration timeout() const noexcept { return shared_.settings.timeout; }
  [[nodiscard]] transport::Duration suspect_after() const;
  [[nodiscard]] bool rank_0_hangs(const Operation& operation) const noexcept;
  void check_operations();
  void tell_that_one_is_late(const Operation& operation);
  void tell_sighting(std::uint64_t operation, std::uint64_t rank);
  void check_end();
  void check_messages();
  void check_unwanted_frames();
  void report_mismatch(std::uint64_t number, const Signature& mine, std::uint32_t peer, const Signature& theirs);
  void rank_0_is_silent(const std::string& about);

  Shared& shared_;
  const Parts parts_;
  const PeerMesh* mesh_ = nullptr;
  transport::TimePoint messages_progress_at_{};
  transport::TimePoint leaving_since_{};
  transport::TimePoint told_late_at_{};
};

}  // namespace tributary::client
