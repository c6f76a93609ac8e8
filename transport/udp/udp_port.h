#pragma once
// A packet port on one UDP socket of the kernel.
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "transport/packet/port.h"
#include "transport/socket/address.h"
#include "tributary/transport/udp.h"

namespace tributary::transport::udp {

/// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int number) noexcept : number_(number) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return number_; }

 private:
  int number_;
};

/// Returns the size of the receive buffer that the system gives for a request of this size, with the system's overhead.
[[nodiscard]] std::size_t receive_buffer_granted(std::size_t wanted);

class UdpPort final : public packet::PacketPort {
 public:
  /// Opens a socket. An empty host stands for the settings' bind_address, or for all addresses of both families.
  [[nodiscard]] static Result<std::unique_ptr<packet::PacketPort>> open(const Endpoint& at,
                                                                        const UdpSettings& settings);
  UdpPort(int socket, int wake, bool four, bool offloads);

  std::size_t receive(std::span<packet::ReceivedPacket> into) override;
  bool send(const packet::PacketAddress& to, std::span<const std::byte> header,
            std::span<const std::byte> payload) override;
  /// The system knows no priority of a single datagram before Linux 6.14, so datagrams get the number as their mark
  /// (SO_MARK), which it knows from Linux 5.5 on. Without CAP_NET_ADMIN datagrams stay unmarked.
  void set_priority(std::uint32_t priority) noexcept override;
  void flush() override;
  void wait(Duration limit) override;
  int descriptor() const noexcept override { return socket_.get(); }
  void watch(std::span<const int> descriptors) override;
  void wake() noexcept override;
  std::size_t datagram_bytes_max(const packet::PacketAddress& to) override;
  packet::PortCounts counts() const noexcept override { return counts_; }
  packet::PacketAddress local() const override;

 private:
  static constexpr std::size_t kMessages = 16;  // messages of one recvmmsg; each may hold many datagrams
  static constexpr std::size_t kMessageBytes = 65536;
  static constexpr std::size_t kControlBytes = 256;
  static constexpr std::size_t kQueuedMax = 256;          // datagrams between two flushes
  static constexpr std::size_t kSegmentsMax = 64;         // datagrams of one message with UDP_SEGMENT
  static constexpr std::size_t kSegmentBytesMax = 65000;  // bytes of all datagrams of one message
  static constexpr std::size_t kRefusalsPerTurn = 4;      // refusals that receive() shows beside data
  static constexpr std::size_t kErrorsPerTurn = 16;  // messages of the error queue that one turn reads to find refusals
  static constexpr int kAnswersMax = 4;              // repeats of a call after the error of an earlier datagram
  static constexpr std::size_t kUncutMax = 8;
  // A message's UDP_SEGMENT and SO_MARK.
  static constexpr std::size_t kSendControlBytes =
      CMSG_SPACE(sizeof(std::uint16_t)) + CMSG_SPACE(sizeof(std::uint32_t));

  struct Queued {
    packet::PacketAddress to;
    std::uint16_t head_bytes = 0;
    std::uint32_t mark = 0;
    std::span<const std::byte> payload;
    [[nodiscard]] std::size_t bytes() const noexcept { return head_bytes + payload.size(); }
  };
  /// A received message whose datagrams are being handed out.
  struct Message {
    packet::PacketAddress from;
    std::size_t bytes = 0;
    std::size_t segment_bytes = 0;
    bool marked = false;
    TimePoint arrived{};
  };

  // udp_receive.cc
  void receive_messages();
  void read_control(msghdr& header, Message& message, Duration to_steady) const;
  std::size_t take_refusals(std::span<packet::ReceivedPacket> into);

  // udp_send.cc
  [[nodiscard]] std::size_t group_from(std::size_t first) noexcept;
  void prepare(mmsghdr& message, std::size_t first, std::size_t count, std::size_t index);
  void send_messages(std::size_t count);
  void send_singly(std::size_t first, std::size_t count, std::size_t index);
  void note_unsent(int error, std::size_t datagrams) noexcept;
  void note_uncut(const packet::PacketAddress& to);
  [[nodiscard]] bool cuts_for(const packet::PacketAddress& to) noexcept;

  Descriptor socket_;
  Descriptor wake_;
  std::vector<pollfd> watched_;  // the two descriptors above, and the descriptors of watch()
  const bool four_;              // the socket carries IPv4 only
  bool segmentation_;            // uses UDP_SEGMENT, which the system knows and has not refused everywhere
                                 // lately
  packet::PortCounts counts_;

  // State of receiving
  std::vector<std::byte> buffers_;
  std::array<mmsghdr, kMessages> headers_{};
  std::array<iovec, kMessages> vectors_{};
  std::array<SocketAddress, kMessages> addresses_{};
  std::vector<std::byte> control_;
  std::array<Message, kMessages> messages_{};
  std::size_t messages_count_ = 0;
  std::size_t message_ = 0;  // message that is being handed out
  std::size_t offset_ = 0;   // offset in that message
  bool refusals_ = false;    // the system has reported an error: the error queue has the details
  std::array<std::array<std::byte, 512>, kRefusalsPerTurn> refusal_bytes_{};

  // State of sending
  std::uint32_t mark_ = 0;        // mark of the datagrams that send() takes; 0: none
  std::optional<bool> may_mark_;  // empty: nothing was marked yet
  std::vector<std::byte> heads_;
  std::vector<Queued> queued_;
  std::vector<iovec> send_vectors_;
  std::vector<mmsghdr> send_messages_;
  std::vector<SocketAddress> send_addresses_;
  std::vector<std::size_t> send_first_;  // index of the first datagram of each message, and the end of the last one
  /// A destination for which the system did not cut a message: the route has a smaller MTU, or its device cannot cut
  /// messages.
  struct Uncut {
    packet::PacketAddress to;
    TimePoint until;
  };
  std::array<Uncut, kUncutMax> uncut_{};
  std::size_t uncut_count_ = 0;
  std::size_t refused_in_a_row_ = 0;  // messages that were not cut since the last message that was cut
  std::vector<std::byte> send_control_;
};

}  // namespace tributary::transport::udp
