// The bytes that a listener of sealed streams reads. First the input is a greeting: it must not be believed, because
// its writer does not know the secret. Then a client that knows the secret seals frames of the input, the input decides
// which byte of the records changes, and how they are cut: exactly the records before the change must open.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/fuzz/transport/script.h"
#include "tests/fuzz/transport/victim.h"
#include "tests/unit/packet/sealed_keys.h"
#include "transport/tcp/sealed_stream.h"

using namespace tributary;
using namespace tributary::transport;
using namespace tributary::fuzz;
using Greeted = SealedStream::Greeted;

namespace {

constexpr LinkName kPlace{77, 1, 0, 5};

Greeted give(SealedStream& to, std::span<const std::byte> bytes) {
  const auto room = to.greeting_room();
  const auto some = bytes.first(std::min(bytes.size(), room.size()));
  std::ranges::copy(some, room.begin());
  return to.greet(some.size(), "a stranger");
}

void stranger_is_not_believed(std::span<const std::uint8_t> input) {
  const auto keys = test::sealed_keys(PacketSecurity::authenticate);
  const auto listener = SealedStream::of_listener(keys);
  if (give(*listener, std::as_bytes(input)) == Greeted::sealed) std::abort();
  const auto client = SealedStream::of_client({{kPlace, PacketSecurity::encrypt}, test::secret_of(6)}).value();
  if (give(*client, std::as_bytes(input)) == Greeted::sealed) std::abort();
}

/// Passes the records on in pieces of the script's lengths; returns the number of bytes that could be opened.
std::size_t opened_bytes(SealedStream& by, std::span<std::byte> records, Script& script) {
  std::vector<std::byte> room(records.size() + 1);
  std::vector<std::byte> content(kPayloadBytesMax);
  std::size_t opened = 0;
  while (!records.empty()) {
    const auto piece = records.first(std::min<std::size_t>(records.size(), 1U + script.byte() * 200U));
    records = records.subspan(piece.size());
    const std::size_t kept = by.take_kept(room);
    std::ranges::copy(piece, room.begin() + static_cast<std::ptrdiff_t>(kept));
    by.begin_opening(std::span(room).first(kept + piece.size()));
    for (auto next = by.next(); next != SealedStream::Next::none; next = by.next()) {
      if (next == SealedStream::Next::senseless) return opened;
      const std::size_t bytes = by.head().content_bytes;
      if (!by.open(std::span(content).first(bytes))) return opened;
      opened += bytes + kRecordExtraBytes;
    }
    by.end_opening();
  }
  return opened;
}

void records_open_up_to_the_change(std::span<const std::uint8_t> input) {
  Script script(input);
  const auto level = script.byte() % 2 == 0 ? PacketSecurity::encrypt : PacketSecurity::authenticate;
  const auto client = SealedStream::of_client({{kPlace, level}, test::secret_of(6)}).value();
  const auto listener = SealedStream::of_listener(test::sealed_keys(PacketSecurity::off));
  if (give(*listener, client->unsent()) != Greeted::sealed) std::abort();
  if (give(*client, listener->unsent()) != Greeted::sealed) std::abort();
  SendQueue queue;
  for (int frames = script.byte() % 8; frames >= 0; --frames) {
    const std::vector<std::byte> payload(script.number(2), std::byte{script.byte()});
    queue.push_copy(header_of(kHostileGroup, 1), payload);
  }
  std::vector<std::byte> records(1U << 20U);
  records.resize(client->fill(queue, records, SIZE_MAX).bytes);
  if (!queue.empty()) std::abort();
  const std::size_t where = script.number(3) % records.size();
  const auto by = std::byte{script.byte()};
  records[where] ^= by;
  const std::size_t opened = opened_bytes(*listener, records, script);
  if (by == std::byte{0} ? opened != records.size() : opened > where) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  stranger_is_not_believed({data, size});
  records_open_up_to_the_change({data, size});
  return 0;
}
