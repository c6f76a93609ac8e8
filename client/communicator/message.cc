#include "client/communicator/message.h"

#include <cstring>

namespace tributary::client {
namespace {

std::string elements(const Signature& signature) {
  return std::to_string(signature.count) + " " + std::string(to_string(signature.dtype));
}

std::string with(std::uint32_t tag) {
  return tag == 0 ? "" : " with tag " + std::to_string(tag);
}

}  // namespace

Signature signature_of(const Message& message) {
  return {.collective = Collective::all_to_all,
          .dtype = message.dtype,
          .op = ReduceOp::sum,
          .root = 0,
          .count = message.count};
}

std::string describe(const Message& message, std::optional<std::uint32_t> peer) {
  return std::string(message.sends ? "send" : "recv") + " of " + elements(signature_of(message)) + with(message.tag) +
         (message.sends ? " to" : " from") + (peer ? " rank " + std::to_string(*peer) : " any rank");
}

std::string disagreement(std::uint32_t from, const Signature& sent, std::uint32_t to, const Signature& expected,
                         std::uint32_t tag) {
  return "rank " + std::to_string(from) + " sent " + elements(sent) + with(tag) + " to rank " + std::to_string(to) +
         ", which called recv for " + elements(expected);
}

void finish_own(const Message& send, const Message& receive, std::uint32_t rank) {
  if (send.count != receive.count || send.dtype != receive.dtype) {
    const Status status = fail(Errc::mismatch, describe(send, rank) + " met " + describe(receive, rank));
    send.on_done(status);
    return receive.on_done(status);
  }
  if (send.count > 0) std::memmove(receive.recv, send.send, send.count * size_of(send.dtype));
  if (receive.on_source) receive.on_source(rank);
  send.on_done({});
  receive.on_done({});
}

}  // namespace tributary::client
