#include "tests/system/chaos/mixed_round.h"
#include "tributary/protocol/numerics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tributary::chaos {
namespace {

using cli::PerfCollective;

constexpr std::int64_t kWaitNanoseconds = 60'000'000'000;  // a longer wait counts as a hang
constexpr std::size_t kRoundedElementsMax = 16384;         // to check a result, the test needs a sum over all ranks

std::uint64_t draw_number(std::mt19937_64& random, std::uint64_t below) {
  return random() % below;  // the same on every rank and every system, unlike std::uniform_int_distribution
}

/// Returns 0, 1, or a size that is spread evenly over the orders of magnitude.
std::size_t draw_bytes(std::mt19937_64& random, std::size_t most) {
  const std::uint64_t kind = draw_number(random, 16);
  if (kind == 0) return 0;
  const int bits = static_cast<int>(draw_number(random, static_cast<std::uint64_t>(std::log2(most)) + 1));
  return std::min(most, (std::size_t{1} << bits) + draw_number(random, std::size_t{1} << bits));
}

PerfCollective draw_collective(std::mt19937_64& random) {
  // Sums come most often: the test is about them.
  constexpr PerfCollective kChoices[] = {
      PerfCollective::all_reduce,     PerfCollective::all_reduce, PerfCollective::all_reduce,
      PerfCollective::reduce_scatter, PerfCollective::all_gather, PerfCollective::broadcast,
      PerfCollective::reduce,         PerfCollective::barrier,    PerfCollective::all_to_all,
      PerfCollective::gather,         PerfCollective::scatter,    PerfCollective::sendrecv};
  return kChoices[draw_number(random, std::size(kChoices))];
}

/// True if every rank has the result afterwards.
bool is_seen_by_all(PerfCollective collective) {
  return collective == PerfCollective::all_reduce || collective == PerfCollective::broadcast ||
         collective == PerfCollective::all_gather;
}

/// Returns a float whose magnitude varies by several orders, so that the bits of a sum depend on the order of summing.
float rounded_value(std::uint64_t salt, std::uint32_t rank, std::size_t i) {
  std::uint64_t x = salt + rank * 0x9E3779B97F4A7C15ULL + i * 0xC2B2AE3D27D4EB4FULL;
  x = (x ^ (x >> 31)) * 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 29;
  const auto mantissa = static_cast<float>(static_cast<std::int32_t>(x & 0xFFFFFF) - 0x800000);
  return std::ldexp(mantissa, static_cast<int>((x >> 24) % 12) - 24);
}

Error library_error(tributary_status status, const tributary_comm* comm, const std::string& call) {
  return {status == TRIBUTARY_ERROR_TIMED_OUT ? Errc::timed_out : Errc::peer_gone,
          call + ": " + tributary_status_string(status) + ": " + tributary_last_error(comm)};
}

}  // namespace

MixedRound::MixedRound(GroupPlace place, std::uint64_t seed, std::size_t bytes_max)
    : place_(place), seed_(seed), bytes_max_(bytes_max), list_(kCallsMax) {
  for (Call& call : list_) {
    call.first = std::make_unique<std::byte[]>(2 * bytes_max);
    call.second = std::make_unique<std::byte[]>(2 * bytes_max);
  }
}

MixedRound::~MixedRound() = default;

std::shared_ptr<cli::CheckedCall> MixedRound::checked(const cli::CallShape& shape) {
  const std::uint32_t root = cli::has_root(shape.collective) ? shape.root : 0;
  const ShapeKey key{shape.collective, shape.dtype, shape.op, root};
  if (const auto it = tables_.find(key); it != tables_.end()) return it->second;
  if (tables_.size() == kTablesMax) tables_.clear();
  return tables_[key] = std::make_shared<cli::CheckedCall>(shape);
}

void MixedRound::draw(Call& call, std::mt19937_64& random) {
  cli::CallShape shape{.collective = draw_collective(random),
                       .dtype = static_cast<DType>(draw_number(random, kDTypeCount)),
                       .op = static_cast<ReduceOp>(draw_number(random, kReduceOpCount)),
                       .root = static_cast<std::uint32_t>(draw_number(random, place_.ranks)),
                       .rank = place_.rank,
                       .ranks = place_.ranks};
  if (!is_defined(shape.op, shape.dtype)) shape.op = ReduceOp::sum;
  const std::size_t bytes = draw_bytes(random, bytes_max_);
  const bool in_place = draw_number(random, 2) == 1 && cli::can_be_in_place(shape.collective);
  call.begin = draw_number(random, cli::kPatternPeriod);
  call.exact = checked(shape);
  call.counts = cli::counts_of(shape.collective, bytes / size_of(shape.dtype), place_.ranks);
  call.place = cli::place_call(shape, call.counts, in_place, call.first.get(), call.second.get());
  call.text = std::string(to_string(shape.collective)) + " of " + std::to_string(call.counts.count) + " " +
              std::string(to_string(shape.dtype)) + " (" + std::string(to_string(shape.op)) + ", root " +
              std::to_string(shape.root) + (in_place ? ", in place)" : ")");
  call.exact->fill_input(call.place, call.counts, call.begin);
}

void MixedRound::draw_rounded(Call& call, std::mt19937_64& random) {
  const std::size_t bytes = draw_bytes(random, std::min(bytes_max_, kRoundedElementsMax * sizeof(float)));
  const std::size_t count = bytes / sizeof(float);
  call.exact = nullptr;
  call.salt = random();
  call.counts = {count, count, count};
  call.place = {call.second.get(), call.second.get()};
  call.text = "all_reduce of " + std::to_string(count) + " rounded float32 (in place)";
  for (std::size_t i = 0; i < count; ++i) {
    const float value = rounded_value(call.salt, place_.rank, i);
    std::memcpy(call.place.send + i * sizeof value, &value, sizeof value);
  }
}

Status MixedRound::start(std::uint64_t round) {
  std::mt19937_64 random(seed_ * 0x9E3779B97F4A7C15ULL + round);
  calls_ = 1 + draw_number(random, kCallsMax);
  for (std::size_t i = 0; i < calls_; ++i) {
    Call& call = list_[i];
    const bool rounded = draw_number(random, 4) == 0;
    rounded ? draw_rounded(call, random) : draw(call, random);
    cli::PerfCall what;
    if (call.exact != nullptr) {
      what = call.exact->at(call.place, call.counts);
    } else {
      what = {.send = call.place.send, .recv = call.place.recv, .count = call.counts.count};
    }
    call.requests.clear();
    const auto status = cli::start(what, place_.comm, call.requests);
    if (status != TRIBUTARY_OK) return std::unexpected(library_error(status, place_.comm, call.text));
  }
  return {};
}

Status MixedRound::finish_call(std::size_t index) {
  Call& call = list_[index];
  for (tributary_request* request : call.requests) {
    const auto status = tributary_wait(request, kWaitNanoseconds);
    if (status != TRIBUTARY_OK) return std::unexpected(library_error(status, place_.comm, call.text));
  }
  ++operations_;
  return check(call);
}

Status MixedRound::check(const Call& call) {
  if (call.exact == nullptr) {
    add_to_digest(call.place.recv, call.counts.recv * sizeof(float));
    return check_rounded(call);
  }
  const std::uint64_t wrong = call.exact->wrong_elements(call.place.recv, call.counts, call.begin);
  if (wrong != 0) return fail(Errc::corrupt, call.text + ": " + std::to_string(wrong) + " elements are wrong");
  if (is_seen_by_all(call.exact->shape().collective))
    add_to_digest(call.place.recv, call.counts.recv * call.exact->element_bytes());
  return {};
}

/// |error| <= (n - 1) u sum|x_i| to first order in u, for any order of summing. Source: N. J. Higham, SIAM J. Sci.
/// Comput. 14 (1993), 783-799.
Status MixedRound::check_rounded(const Call& call) const {
  constexpr double kUnit = 5.9604644775390625e-8;  // 2^-24
  for (std::size_t i = 0; i < call.counts.count; ++i) {
    double sum = 0, magnitude = 0;
    for (std::uint32_t rank = 0; rank < place_.ranks; ++rank) {
      const double value = rounded_value(call.salt, rank, i);
      sum += value;
      magnitude += std::fabs(value);
    }
    float seen = 0;
    std::memcpy(&seen, call.place.recv + i * sizeof seen, sizeof seen);
    if (std::fabs(seen - sum) <= 1.01 * place_.ranks * kUnit * magnitude) continue;
    return fail(Errc::corrupt, call.text + ": element " + std::to_string(i) + " is " + std::to_string(seen) +
                                   ", not about " + std::to_string(sum));
  }
  return {};
}

/// The digest is FNV-1a, by words.
void MixedRound::add_to_digest(const std::byte* data, std::size_t bytes) {
  constexpr Digest kPrime = 0x100000001B3ULL;
  while (bytes > 0) {
    std::uint64_t word = 0;
    const std::size_t taken = std::min(bytes, sizeof word);
    std::memcpy(&word, data, taken);
    digest_ = (digest_ ^ word) * kPrime;
    digest_ ^= digest_ >> 29;
    data += taken;
    bytes -= taken;
  }
}

}  // namespace tributary::chaos
