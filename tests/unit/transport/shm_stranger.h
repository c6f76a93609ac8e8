#pragma once
// A process that the listener has let in, but that runs other code: it maps the memory by itself and writes anything to
// it.
#include <atomic>
#include <cstring>
#include <string>

#include "transport/shm/ring_memory.h"
#include "transport/shm/unix_socket.h"
#include "tributary/protocol/frame.h"

namespace tributary::transport::test {

class ShmStranger {
 public:
  explicit ShmStranger(const std::string& endpoint)
      : socket(connect_to_name(shared_name(endpoint)).value_or(OwnedDescriptor())) {}
  /// Does one step of connecting; the listener must allow each step. False: the connection is not open yet.
  [[nodiscard]] bool take_offer() {
    std::byte offer[8];
    OwnedDescriptor descriptor;
    if (receive_message(socket.get(), offer, &descriptor) != sizeof offer) return false;
    std::uint32_t ring_bytes = 0;
    std::memcpy(&ring_bytes, offer + 4, sizeof ring_bytes);
    auto adopted = RingMemory::adopt(std::move(descriptor), ring_bytes);
    if (!adopted) return false;
    memory = std::move(*adopted);
    return true;
  }
  void say(std::uint32_t word) { (void)send_message(socket.get(), std::as_bytes(std::span(&word, 1))); }
  void say_mapped() { say(0x5041'4D01); }
  [[nodiscard]] bool hear_go() {
    std::byte go[4];
    return receive_message(socket.get(), go) == sizeof go;
  }
  /// Writes one line of the ring, and the ring's position behind this line.
  void write(const FrameHeader& header) {
    encode(header, std::span<std::byte, kFrameHeaderBytes>(memory->outgoing() + written_, kFrameHeaderBytes));
    written_ += kFrameHeaderBytes;
    memory->mine().written.store(written_);
  }
  void write_garbage(std::size_t lines, int byte) {
    std::memset(memory->outgoing() + written_, byte, lines * kLineBytes);
    written_ += lines * kLineBytes;
    memory->mine().written.store(written_);
  }
  /// Writes a correct frame, at most to the ring's end. It does not publish the frame's last `lines_short` lines.
  void write_frame(FrameHeader header, std::span<const std::byte> payload, std::size_t lines_short = 0) {
    header.payload_bytes = static_cast<std::uint32_t>(payload.size());
    std::memcpy(memory->outgoing() + written_ + kFrameHeaderBytes, payload.data(), payload.size());
    encode(header, std::span<std::byte, kFrameHeaderBytes>(memory->outgoing() + written_, kFrameHeaderBytes));
    written_ += kFrameHeaderBytes + whole_lines(payload.size());
    memory->mine().written.store(written_ - lines_short * kLineBytes);
    ring();
  }
  void ring() { (void)send_message(socket.get(), std::as_bytes(std::span("\1", 1))); }
  /// Writes anywhere, also where only the other side may write.
  [[nodiscard]] Side& their_side() { return const_cast<Side&>(memory->theirs()); }

  OwnedDescriptor socket;
  std::shared_ptr<RingMemory> memory;

 private:
  std::uint64_t written_ = 0;
};

}  // namespace tributary::transport::test
