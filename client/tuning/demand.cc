#include "client/tuning/demand.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tributary::tuning {

using schedule::Algorithm;

namespace {

constexpr double kSpread = 1.05;  // factor on the transfer if partners change from round to round
constexpr double kIncast = 1.25;  // factor on the transfer if all ranks send to all ranks at once
constexpr double kStored = 2;     // factor on the transfer if a rank receives all data before it sends them on

Demand all_reduce(Algorithm algorithm, double ranks, double bytes) noexcept {
  const auto whole = static_cast<std::uint32_t>(ranks);
  const double power = std::bit_floor(whole);
  const double log = std::bit_width(whole) - 1;
  const double fold = std::has_single_bit(whole) ? 0 : 2;
  const double folded = 2 * (ranks - power);  // number of messages
  const double part = bytes * (ranks - 1) / ranks;
  switch (algorithm) {
    case Algorithm::recursive_doubling: {
      const double messages = power * log + folded;
      // Assume a call in place: with an odd number of steps the algorithm first copies its input (doubling.cc).
      const bool moves_input = fold == 0 && std::bit_width(whole) % 2 == 0;
      return {.rounds = log + fold,
              .bytes = bytes * (log + fold),
              .messages = messages,
              .all_bytes = bytes * messages,
              .reduced = bytes * (log + fold / 2),
              .all_reduced = bytes * (power * log + folded / 2),
              .copied = moves_input ? bytes : 0};
    }
    case Algorithm::halving_doubling:
      return {.rounds = 2 * log + fold,
              .bytes = bytes * (2 * (power - 1) / power + fold),
              .slowdown = kSpread,
              .messages = 2 * power * log + folded,
              .all_bytes = bytes * (2 * (power - 1) + folded),
              .reduced = bytes * ((power - 1) / power + fold / 2),
              .all_reduced = bytes * (ranks - 1)};
    default:
      return {.rounds = 2 * (ranks - 1),
              .bytes = 2 * part,
              .messages = 2 * ranks * (ranks - 1),
              .all_bytes = 2 * bytes * (ranks - 1),
              .reduced = part,
              .all_reduced = bytes * (ranks - 1)};
  }
}

}  // namespace

Demand demand(Collective collective, Algorithm algorithm, double ranks, double bytes) noexcept {
  const double others = ranks - 1;
  const double log = std::bit_width(static_cast<std::uint32_t>(others));  // rounded up
  const double part = bytes * others / ranks;
  const double one_by_one = ranks / 2;
  Demand d{.rounds = others, .bytes = part, .messages = ranks * others, .all_bytes = bytes * others};
  switch (collective) {
    case Collective::all_reduce:
      return all_reduce(algorithm, ranks, bytes);
    case Collective::broadcast:
    case Collective::reduce: {
      const bool reduces = collective == Collective::reduce;
      const bool binomial = algorithm == Algorithm::binomial;
      d.rounds = binomial ? log : (reduces ? ranks : log + others);
      d.bytes = binomial ? bytes * log : 2 * part;
      d.messages = binomial ? others : others * (ranks + 1);
      if (!binomial) d.all_bytes += reduces ? part : bytes * log / 2;
      if (reduces) d.reduced = binomial ? bytes * log : part;
      if (reduces) d.all_reduced = bytes * others;
      return d;
    }
    case Collective::reduce_scatter:
      d.reduced = part;
      d.all_reduced = bytes * others;
      if (algorithm == Algorithm::direct) d.rounds = one_by_one;
      if (algorithm == Algorithm::direct) d.slowdown = kIncast;
      return d;
    case Collective::all_gather:
      if (algorithm != Algorithm::bruck) return d;
      d.rounds = log;
      d.slowdown = kIncast;
      d.messages = ranks * log;
      d.all_bytes += bytes * ranks;  // each rank copies its parts into their order
      return d;
    case Collective::gather:
    case Collective::scatter: {
      const bool binomial = algorithm == Algorithm::binomial;
      d.rounds = binomial ? log : one_by_one;
      d.slowdown = binomial ? kStored : 1;
      d.messages = others;
      d.all_bytes = binomial ? bytes * std::max(1.0, log / 2) : part;
      return d;
    }
    case Collective::barrier:
      return {.rounds = log, .messages = ranks * log};
    case Collective::all_to_all:
      return d;
  }
  return {};
}

Demand exact_demand(Collective collective, double ranks, double bytes) noexcept {
  const double others = ranks - 1;
  const double part = bytes * others / ranks;
  const double one_by_one = ranks / 2;
  if (collective == Collective::all_reduce &&
      bytes <= static_cast<double>(schedule::exact_short_bytes(static_cast<std::uint32_t>(ranks)))) {
    return {.rounds = one_by_one,
            .bytes = bytes * others,
            .slowdown = kIncast,
            .messages = ranks * others,
            .all_bytes = bytes * ranks * others,
            .reduced = bytes * ranks,
            .all_reduced = bytes * ranks * ranks,
            .copied = bytes};
  }
  // Every rank reduces one part, from the inputs of all ranks. A second phase moves these parts on.
  Demand d{.rounds = one_by_one,
           .bytes = part,
           .slowdown = kIncast,
           .messages = ranks * others,
           .all_bytes = bytes * others,
           .reduced = bytes,
           .all_reduced = bytes * ranks,
           .copied = bytes / ranks};
  if (collective == Collective::reduce_scatter) return d;
  const bool to_all = collective == Collective::all_reduce;
  d.rounds += to_all ? others : one_by_one;
  d.bytes += part;
  d.slowdown = (1 + kIncast) / 2;  // a ring, or one rank's incoming parts, without the incast of the first phase
  d.messages += to_all ? ranks * others : others;
  d.all_bytes += to_all ? bytes * others : part;
  return d;
}

}  // namespace tributary::tuning
