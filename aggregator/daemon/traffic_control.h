#pragma once
// The kernel's queueing disciplines (qdiscs) and their classes, by rtnetlink: what `tc` does, as far as link_shares.h
// needs it.
//
// The file speaks netlink itself, because a dozen messages of fixed form are less than a library: libnl would be a
// dependency of every package and image of the aggregator, also where no link has shares.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tributary/protocol/error.h"

namespace tributary::aggregator {

/// The place of a qdisc at the root of an interface.
inline constexpr std::uint32_t kAtRoot = 0xFFFF'FFFF;

struct Qdisc {
  std::string kind;
  std::uint32_t handle = 0;  // 0: the system made it by itself
  std::uint32_t parent = 0;  // kAtRoot, or the class below which it is
};

/// A class of HTB. Rates are in bytes per second.
struct HtbClass {
  std::uint32_t parent = 0;
  std::uint32_t handle = 0;
  std::uint64_t rate = 0;           // goes before all that other classes want beyond their rates
  std::uint64_t ceil = 0;           // most of all
  std::uint32_t quantum_bytes = 0;  // part of what is left, in proportion to the other classes' quanta
  std::uint32_t burst_bytes = 0;    // sent at once after a pause
};

/// Returns a handle as tc writes it: "7471:", "1:10".
[[nodiscard]] std::string handle_text(std::uint32_t handle);
/// Reads a class's handle: two hexadecimal numbers with a colon between. Empty: it is none.
[[nodiscard]] std::optional<std::uint32_t> parse_class_handle(std::string_view text);

/// A socket of rtnetlink. Each call sends one request and waits for its answer, at most 2 s. Errc::denied: the process
/// lacks CAP_NET_ADMIN; Errc::io: any other refusal, with the kernel's words. One thread at a time may use it.
class TrafficControl {
 public:
  [[nodiscard]] static Result<TrafficControl> open();
  ~TrafficControl();
  TrafficControl(TrafficControl&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  TrafficControl& operator=(TrafficControl&&) = delete;

  /// Returns the qdiscs of an interface, without those that the system hides because it made them by itself.
  [[nodiscard]] Result<std::vector<Qdisc>> qdiscs(std::uint32_t interface);
  /// Returns the longest packet that the system hands to the interface, before it is cut into frames.
  [[nodiscard]] Result<std::uint32_t> packet_bytes_max(std::uint32_t interface);
  /// Makes a qdisc of kind htb where there is none, or one that the system made.
  [[nodiscard]] Status add_htb(std::uint32_t interface, std::uint32_t parent, std::uint32_t handle,
                               std::uint32_t default_class);
  [[nodiscard]] Status remove_qdisc(std::uint32_t interface, std::uint32_t parent, std::uint32_t handle);
  /// Makes or changes a class.
  [[nodiscard]] Status set_class(std::uint32_t interface, const HtbClass& one);
  /// Lets the class `parent` queue at most this number of bytes; a further packet is dropped.
  [[nodiscard]] Status set_queue(std::uint32_t interface, std::uint32_t parent, std::uint32_t bytes_max);
  /// Makes the qdisc `parent` take a packet's mark as the handle of its class, if the packet's priority names no class.
  [[nodiscard]] Status add_mark_filter(std::uint32_t interface, std::uint32_t parent);
  /// Removes a class; it is no error if there is none.
  [[nodiscard]] Status remove_class(std::uint32_t interface, std::uint32_t handle);

 private:
  class Message;
  explicit TrafficControl(int socket) : socket_(socket) {}
  /// Sends a request and returns the payloads of its answers, each with its netlink header.
  [[nodiscard]] Result<std::vector<std::vector<std::byte>>> ask(Message& message);
  [[nodiscard]] Status tell(Message& message);

  int socket_;
  std::uint32_t sequence_ = 0;
};

}  // namespace tributary::aggregator
