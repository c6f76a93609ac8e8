// An RDMA peer sends greetings, messages with records, and immediate values in any order, and claims that it has
// written to places. The program needs no device: it defines the registration calls itself. The receiver must believe
// only places within its offers, and each only once.
#include <netinet/in.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "tests/fuzz/transport/script.h"
#include "transport/verbs/landing.h"
#include "transport/verbs/places.h"
#include "transport/verbs/proof.h"
#include "transport/verbs/record.h"

#undef ibv_reg_mr

extern "C" {
ibv_mr* ibv_reg_mr(ibv_pd* domain, void* address, std::size_t bytes, int) {
  auto* const region = new ibv_mr{};
  region->pd = domain;
  region->context = domain->context;
  region->addr = address;
  region->length = bytes;
  return region;
}
ibv_mr* ibv_reg_mr_iova2(ibv_pd* domain, void* address, std::size_t bytes, std::uint64_t, unsigned rights) {
  return ibv_reg_mr(domain, address, bytes, static_cast<int>(rights));
}
ibv_mr* ibv_reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
  return nullptr;
}
int ibv_dereg_mr(ibv_mr* region) {
  delete region;
  return 0;
}
const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}
}

using namespace tributary;
using namespace tributary::transport;
using namespace tributary::transport::verbs;
using tributary::fuzz::Script;

namespace {

constexpr std::uint32_t kPlaces = 4, kCells = 6, kCellPayload = 300;
constexpr std::size_t kPlaceBytes = 512;

FrameHeader header_of(std::uint8_t sequence) {
  FrameHeader header;
  header.type = FrameType::result;
  header.sequence = sequence;
  header.payload_bytes = kPlaceBytes;
  return header;
}

void greeting(Script& script) {
  Greeting said;
  const bool ours = script.byte() % 4 != 0;
  const auto bytes = script.take(sizeof said + script.byte() % 8);
  if (bytes.size() >= sizeof said) std::memcpy(&said, bytes.data(), sizeof said);
  if (ours) said.set_security(static_cast<PacketSecurity>(script.byte() % 3));
  const auto data = std::make_unique<std::byte[]>(bytes.size());
  std::memcpy(data.get(), &said, std::min(bytes.size(), sizeof said));
  Greeting read;
  if (!read_greeting({data.get(), bytes.size()}, read)) return;
  if (read.receive_depth < kDepthMin || read.receive_depth > kDepthMax ||
      read.message_bytes() > message_bytes_for(kEagerBytesMax) + tag_bytes(read.security())) {
    std::abort();
  }
  // A proof is valid only for this secret, this greeting and this place.
  sockaddr_in from{};
  from.sin_family = AF_INET;
  from.sin_addr.s_addr = static_cast<std::uint32_t>(script.number(4));
  const LinkSecret secret{};
  const auto& place = reinterpret_cast<const sockaddr&>(from);
  read.proof = proof_of_request(secret, read, place);
  if (!same_proof(read.proof, proof_of_request(secret, read, place))) std::abort();
  ++read.child;
  if (same_proof(read.proof, proof_of_request(secret, read, place))) std::abort();
}

/// The part of one connection that depends only on the peer's messages.
class Peer {
 public:
  Peer() {
    context_.device = &device_;
    domain_.context = &context_;
    places_.open(domain_, kPlaces, false, statistics_);
    landing_.make(kCells, kCellPayload);
    if (!landing_.open(registrations_, window_, nullptr)) std::abort();
  }

  /// Builds records from the input, after a prefix that may be cut.
  void message(Script& script) {
    std::vector<std::byte> bytes(script.byte() % 32 == 0 ? 8 : sizeof(MessagePrefix));
    for (std::uint8_t records = script.byte() % 4; records > 0; --records) add_record(bytes, script);
    if (script.byte() % 8 == 0) bytes.resize(bytes.size() - std::min<std::size_t>(bytes.size(), script.byte()));
    // Copy into a vector of exact length, so that a sanitizer detects a read past its end.
    const std::vector<std::byte> exact(bytes);
    walk(exact, script.byte() % kQueuePairsMax);
  }
  void written(Script& script) {
    const auto immediate = static_cast<std::uint32_t>(script.number(4));
    std::uint32_t bytes = static_cast<std::uint32_t>(script.number(2));
    if (script.byte() % 4 == 0) bytes = kPlaceBytes;
    const std::uint8_t queue_pair = script.byte() % kQueuePairsMax;
    const std::uint32_t likely = script.byte() % 2 == 0 ? written_ : 0;
    if ((immediate & kCellFlag) == 0) {
      const PlaceImmediate said = place_of(immediate);
      if (packed(said) != immediate) std::abort();
      if (places_.written(said.place, queue_pair, bytes)) {
        const auto memory = places_.memory(said.place);
        if (said.place >= kPlaces || memory.size() != bytes || places_.written(said.place, queue_pair, bytes))
          std::abort();
        places_.free(said.place);
      }
      return;
    }
    CellImmediate said = cell_of(immediate);
    if (likely != 0) said.cell = likely & kCellMask;
    const auto cell = landing_.written(said, bytes);
    if (!cell) return;
    ++written_;
    const auto message = landing_.message(cell->number, said.message_bytes);
    const auto payload = landing_.payload(cell->number, cell->payload_bytes);
    if (cell->number >= kCells || message.data() + message.size() != payload.data() ||
        message.size() > kCellMessageBytes || payload.size() > kCellPayload) {
      std::abort();
    }
    walk(message, queue_pair);
    held_.push_back(cell->number);
    if (held_.size() > kCells) std::abort();
  }
  void give_back(std::uint8_t which) {
    if (held_.empty()) return;
    const auto at = held_.begin() + static_cast<std::ptrdiff_t>(which % held_.size());
    if (which % 2 == 0) {
      landing_.free(*at);
    } else if (!landing_.free(landing_.payload(*at, 1).data())) {
      std::abort();
    }
    held_.erase(at);
  }
  void expect(Script& script) {
    const std::uint8_t sequence = script.byte();
    if (script.byte() % 4 == 0) return static_cast<void>(places_.withdraw(header_of(sequence)));
    if (!places_.expect(header_of(sequence), memory_)) return;
    if (script.byte() % 4 == 0) return;
    if (!places_.tell(registrations_, script.byte() % kQueuePairsMax, nullptr)) std::abort();
  }
  /// Writes to memory that the peer has offered.
  void write(Script& script) {
    const std::size_t bytes = script.number(2);
    if (!there_.takes(bytes)) return;
    ibv_send_wr work{};
    const std::uint32_t queue_pair = there_.next_queue_pair();
    if (queue_pair >= kQueuePairsMax) std::abort();
    there_.write_next(work, queue_pair, 8U * (3U + script.byte() % 30U), 0);
  }
  void freed(Script& script) {
    const auto bits = static_cast<std::uint32_t>(script.number(2));
    static_cast<void>(there_.freed_to(script.byte() % 2 == 0 ? there_.whole_count(bits, kFreedMask) : bits));
  }

 private:
  static void add_record(std::vector<std::byte>& bytes, Script& script) {
    RecordHead head{.kind = static_cast<RecordKind>(script.byte() % 9),
                    .payload_bytes = static_cast<std::uint32_t>(script.number(2)),
                    .header = {}};
    FrameHeader header = header_of(script.byte());
    header.payload_bytes = script.byte() % 8 == 0 ? 7U : head.payload_bytes;
    encode(header, head.header);
    if (script.byte() % 8 == 0) head.header[script.byte() % head.header.size()] ^= std::byte{0x40};
    if (script.byte() % 16 == 0) head.payload_bytes = static_cast<std::uint32_t>(script.number(4));
    const auto* const raw = reinterpret_cast<const std::byte*>(&head);
    bytes.insert(bytes.end(), raw, raw + sizeof head);
    const auto body = script.take(script.byte() % 64);
    bytes.insert(bytes.end(), body.begin(), body.end());
    bytes.resize(std::min<std::size_t>(aligned(bytes.size()), 4096));
  }
  void walk(std::span<const std::byte> message, std::uint32_t queue_pair) {
    for (std::size_t at = sizeof(MessagePrefix); at < message.size();) {
      const auto record = read_record(message, at);
      if (!record) return;
      if (record->end <= at || record->end > message.size()) std::abort();
      if (!record->body.empty() && (record->body.data() < message.data() ||
                                    record->body.data() + record->body.size() > message.data() + message.size())) {
        std::abort();
      }
      unsigned sum = 0;
      for (const std::byte one : record->body) sum += std::to_integer<unsigned>(one);  // read every byte
      read_ = sum;
      if (record->head.kind == RecordKind::place || record->head.kind == RecordKind::room) learn(*record, queue_pair);
      at = record->end;
    }
  }
  void learn(const Record& record, std::uint32_t queue_pair) {
    RemotePayload where;
    std::memcpy(&where, record.body.data(), sizeof where);
    if (record.head.kind == RecordKind::room)
      return static_cast<void>(there_.open(where, record.head.payload_bytes, queue_pair));
    const auto header = decode(record.head.header);
    if (!header || header->payload_bytes != record.head.payload_bytes) return;
    if (!peer_places_.add({*header, where, queue_pair})) return;
    const auto* const found = peer_places_.find(*header);
    if (found == nullptr || found->where.number >= kPlacesMax) std::abort();
    if (where.key % 2 == 0) peer_places_.taken(found);
  }

  ibv_device device_{};
  ibv_context context_{};
  ibv_pd domain_{};
  VerbsSettings settings_;
  KeptRanges kept_;
  VerbsStatistics statistics_;
  Registrations registrations_{domain_, {.peers = true}, settings_, kept_, statistics_};
  std::vector<std::byte> memory_ = std::vector<std::byte>(kPlaceBytes);
  MemoryWindow window_;
  Places places_;
  Landing landing_;
  PeerLanding there_;
  PeerPlaces peer_places_;
  std::deque<std::uint32_t> held_;
  std::uint32_t written_ = 0;
  volatile unsigned read_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script({data, size});
  Peer peer;
  for (int steps = 0; !script.over() && steps < 128; ++steps) {
    switch (script.byte() % 8) {
      case 0:
        greeting(script);
        break;
      case 1:
      case 2:
        peer.message(script);
        break;
      case 3:
        peer.give_back(script.byte());
        break;
      case 4:
        peer.expect(script);
        break;
      case 5:
        peer.write(script);
        break;
      case 6:
        peer.freed(script);
        break;
      default:
        peer.written(script);
    }
  }
  return 0;
}
