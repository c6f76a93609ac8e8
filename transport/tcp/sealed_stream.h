#pragma once
// The seal of one TCP connection: the greeting, then the records of both directions, and the bytes that wait between
// two turns. It knows no socket. The core has the room for records under way, because a connection that is idle must
// not keep room for large records.
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "transport/channel/send_queue.h"
#include "transport/seal/record_key.h"
#include "transport/seal/stream_greeting.h"
#include "tributary/transport/channel.h"

namespace tributary::transport {

class SealedStream {
 public:
  /// The client's side of a connection for `link`. Errc::unsupported: OpenSSL makes no key.
  [[nodiscard]] static Result<std::unique_ptr<SealedStream>> of_client(const LinkKeys::Link& link);
  /// The listener's side, which finds out whether the client seals. If the listener demands a seal, it says so at once:
  /// a client that does not seal may wait for the listener's first frame.
  [[nodiscard]] static std::unique_ptr<SealedStream> of_listener(std::shared_ptr<const LinkKeys> keys);

  /// True once both sides have agreed on keys.
  [[nodiscard]] bool ready() const noexcept { return sending_.has_value(); }
  [[nodiscard]] const SealedLink& link() const noexcept { return link_.link; }
  /// True for a listener that demands no seal, and to which the client has said nothing yet.
  [[nodiscard]] bool may_begin_in_clear() const noexcept {
    return keys_ != nullptr && theirs_bytes_ == 0 && keys_->least() == PacketSecurity::off;
  }

  // ---- The greeting
  enum class Greeted : std::uint8_t {
    more,      // bytes are missing
    in_clear,  // the client sends frames: greeting() has its first bytes
    waits,     // this side waits for its manager's key: look_for_key() goes on
    sealed,    // ready() is true
    refused,   // error() says why, and refusal() what the other side should know
  };
  /// The place of the bytes that are missing.
  [[nodiscard]] std::span<std::byte> greeting_room() noexcept { return std::span(theirs_).subspan(theirs_bytes_); }
  [[nodiscard]] std::span<const std::byte> greeting() const noexcept { return std::span(theirs_).first(theirs_bytes_); }
  /// Notes that `bytes` more bytes of the greeting are there, and judges what has come.
  [[nodiscard]] Greeted greet(std::size_t bytes, const std::string& peer);
  /// True since `waits`. The listener reads nothing meanwhile.
  [[nodiscard]] bool waits_for_key() const noexcept { return key_until_ != TimePoint::max(); }
  [[nodiscard]] Greeted look_for_key(const std::string& peer);
  [[nodiscard]] const Error& error() const noexcept { return error_; }
  /// none: the other side must learn nothing.
  [[nodiscard]] RefuseReason refusal() const noexcept { return refusal_; }

  // ---- Bytes to write
  /// Bytes that are sealed and wait for the system. They go before all other bytes.
  [[nodiscard]] std::span<const std::byte> unsent() const noexcept { return std::span(unsent_).subspan(unsent_begin_); }
  void note_sent(std::size_t bytes) noexcept;
  void keep_unsent(std::span<const std::byte> bytes);
  struct Filled {
    std::size_t bytes = 0;    // bytes of records in the room
    std::size_t content = 0;  // bytes of frames in them
    std::size_t frames = 0;   // frames that are whole with them
    bool failed = false;      // OpenSSL has failed
  };
  /// Seals frames of the queue into `room`, until about `content_max` bytes of frames are sealed or the room is full.
  [[nodiscard]] Filled fill(SendQueue& queue, std::span<std::byte> room, std::size_t content_max) noexcept;

  /// Seals bytes of a stream without frames into `record`, as RecordKey::seal() does.
  [[nodiscard]] bool seal_bytes(std::span<const std::byte> content, std::span<std::byte> record) noexcept {
    return sending_->seal(true, content, record);
  }

  // ---- Records that were read
  /// Bytes that were read and not opened: in the core's room while a turn opens them, else in this object.
  void begin_opening(std::span<std::byte> bytes) noexcept;
  enum class Next : std::uint8_t { none, record, senseless };
  /// Looks for a whole record.
  [[nodiscard]] Next next() noexcept;
  [[nodiscard]] const RecordHead& head() const noexcept { return head_; }
  /// Opens the record that next() has found, into a place as long as its content.
  [[nodiscard]] bool open(std::span<std::byte> content) noexcept;
  [[nodiscard]] std::uint64_t records_opened() const noexcept { return receiving_->next(); }
  /// Keeps the bytes that are not opened beyond the turn. Has no effect outside of a turn that opens.
  void end_opening();
  /// Copies the kept bytes to the beginning of `room`. Returns their number.
  [[nodiscard]] std::size_t take_kept(std::span<std::byte> room) const noexcept;
  /// True if next() will find something in the kept bytes.
  [[nodiscard]] bool keeps_record() const noexcept { return keeps_record_; }
  [[nodiscard]] bool keeps_bytes() const noexcept { return !kept_.empty() || !opening_.empty(); }

 private:
  SealedStream() = default;
  [[nodiscard]] Greeted take_hello(const std::string& peer);
  [[nodiscard]] Greeted take_answer(const std::string& peer);
  [[nodiscard]] Greeted refuse(Error error, RefuseReason reason = RefuseReason::none);
  void start(const StreamSecrets& secrets, bool client);
  [[nodiscard]] std::size_t gather_frames(SendQueue& queue, std::span<std::byte> into, Filled& filled) noexcept;

  std::shared_ptr<const LinkKeys> keys_;  // the listener's keys; nullptr: this is the client
  LinkKeys::Link link_;
  std::optional<ExchangeKey> exchange_;  // the client's key, until the answer
  GreetingBytes ours_{};
  GreetingBytes theirs_{};
  std::size_t theirs_bytes_ = 0;
  Error error_{};
  RefuseReason refusal_ = RefuseReason::none;
  TimePoint key_until_ = TimePoint::max();  // max: does not wait for the manager's key

  std::optional<RecordKey> sending_;
  std::vector<std::byte> unsent_;
  std::size_t unsent_begin_ = 0;

  std::optional<RecordKey> receiving_;
  RecordHead head_;
  std::span<std::byte> opening_;
  std::vector<std::byte> kept_;
  bool keeps_record_ = false;
};

}  // namespace tributary::transport
