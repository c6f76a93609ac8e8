#pragma once
// A peer that is made by hand from a queue pair. It speaks the protocol as far as a test wants, and reads and writes
// wherever the test says.
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "transport/verbs/resources.h"
#include "transport/verbs/sealed_messages.h"
#include "transport/verbs/wire.h"
#include "tributary/protocol/descriptor.h"
#include "tributary/protocol/frame.h"

namespace tributary::transport::test {

class RawPeer {
 public:
  static constexpr std::uint32_t kDepth = 16;
  /// Connects and claims `group`. `pump` lets the other side work while this side waits. `receives` is the number of
  /// receives that it really posts. `seal`: the connection is sealed for this link, and greet() must follow.
  RawPeer(const Endpoint& to, const std::string& from, std::uint64_t group, std::function<void()> pump,
          std::uint32_t receives = kDepth, const std::optional<LinkKeys::Link>& seal = {});
  ~RawPeer();
  RawPeer(const RawPeer&) = delete;
  RawPeer& operator=(const RawPeer&) = delete;

  [[nodiscard]] bool connected() const noexcept { return connected_; }
  /// Sends a message with one frame and its payload; `fetched` is the count of the other side's payloads that it has
  /// fetched.
  void send_frame(const FrameHeader& header, std::span<const std::byte> payload, std::uint32_t fetched = 0);
  /// Sends only an acknowledgement.
  void acknowledge(std::uint32_t fetched);

  // ---- A sealed connection
  /// Sends the hello of `seal`, and takes the answer. False: there is none that it believes.
  [[nodiscard]] bool greet(std::unique_ptr<verbs::SealedMessages> seal);
  /// Returns the next message with this record, in clear, with room for the authenticator.
  [[nodiscard]] std::vector<std::byte> message_with(verbs::RecordKind kind, const FrameHeader& header,
                                                    std::span<const std::byte> body);
  [[nodiscard]] verbs::SealedMessages& seal() noexcept { return *seal_; }
  /// Sends these bytes, whatever they are.
  void send_bytes(std::span<const std::byte> message);

  struct Offer {
    FrameHeader header;
    verbs::RemotePayload where;
    std::uint32_t bytes = 0;
  };
  /// Returns the next payload that the other side offers.
  [[nodiscard]] std::optional<Offer> next_offer();
  /// Returns the next place or room that the other side announces; `told` says which of the two.
  struct Told {
    verbs::RecordKind kind{};
    FrameHeader header;
    verbs::RemotePayload where;
    std::uint32_t bytes = 0;
  };
  [[nodiscard]] std::optional<Told> next_told();

  /// Returns the status of the completion; IBV_WC_GENERAL_ERR if none came within the limit.
  [[nodiscard]] ibv_wc_status read(std::uint64_t address, std::uint32_t key, std::size_t bytes);
  [[nodiscard]] ibv_wc_status write(std::uint64_t address, std::uint32_t key, std::size_t bytes);
  /// Does the same, and reports the write to the other side, in the protocol's way or in a wrong way.
  [[nodiscard]] ibv_wc_status write_and_tell(std::uint64_t address, std::uint32_t key, std::size_t bytes,
                                             verbs::CellImmediate said);
  [[nodiscard]] ibv_wc_status write_and_tell(std::uint64_t address, std::uint32_t key, std::size_t bytes,
                                             verbs::PlaceImmediate said);
  /// Makes the number of the next message or reported write too great by this much.
  void skip_numbers(std::uint32_t count) noexcept { messages_ += count; }
  /// Puts the bytes for a cell at the beginning of scratch(): a message with this frame, then its payload. Returns the
  /// length of the message.
  [[nodiscard]] std::uint32_t make_cell(const FrameHeader& header, std::span<const std::byte> payload);
  /// The bytes that read() has brought, or that write() will write.
  [[nodiscard]] std::span<std::byte> scratch() noexcept { return scratch_; }

 private:
  static constexpr std::size_t kScratchBytes = 1U << 20;
  static constexpr std::size_t kMessageBytes = verbs::message_bytes_for(4096) + verbs::kMessageTagBytes;

  [[nodiscard]] bool wait_event(rdma_cm_event_type wanted);
  [[nodiscard]] bool set_up_queue_pair(std::uint32_t receives);
  void post_receive(std::uint32_t index);
  void send_message(std::span<const std::byte> records, std::uint32_t fetched);
  [[nodiscard]] verbs::MessagePrefix next_prefix(std::size_t record_bytes, std::uint32_t fetched) noexcept;
  [[nodiscard]] ibv_wc_status one_sided(ibv_wr_opcode opcode, std::uint64_t address, std::uint32_t key,
                                        std::size_t bytes, std::uint32_t immediate = 0);
  /// Waits for the completion with this number, and drops earlier completions.
  [[nodiscard]] std::optional<ibv_wc> wait_for(std::uint64_t number);
  void take(const ibv_wc& completion);
  void wait_until(const std::function<bool()>& done);
  template <class T>
  [[nodiscard]] std::optional<T> take_first(std::vector<T>& from);

  std::function<void()> pump_;
  verbs::EventChannelPtr events_;
  verbs::ConnectionIdPtr id_;
  verbs::ProtectionDomainPtr domain_;
  verbs::CompletionQueuePtr queue_;
  std::vector<std::byte> scratch_;
  std::vector<std::byte> ring_;
  std::vector<std::byte> out_;
  verbs::MemoryRegionPtr scratch_region_, ring_region_, out_region_;
  std::vector<Offer> offers_;
  std::vector<Told> told_;
  std::unique_ptr<verbs::SealedMessages> seal_;
  std::vector<std::vector<std::byte>> sealed_;  // messages of a sealed connection, as they came
  bool sealed_connection_ = false;
  std::uint32_t consumed_ = 0;
  std::uint32_t messages_ = 0;
  std::uint64_t next_number_ = 1000;
  bool connected_ = false;
};

}  // namespace tributary::transport::test
