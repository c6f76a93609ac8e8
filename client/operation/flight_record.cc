#include "client/operation/flight_record.h"

#include <time.h>

#include <algorithm>

#include "client/operation/payload.h"
#include "tributary/protocol/assert.h"

namespace tributary::client {
namespace {

using transport::TimePoint;

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr auto kAcquire = std::memory_order_acquire;
constexpr auto kRelease = std::memory_order_release;
constexpr int kReadsMax = 64;  // a writer changes an entry in nanoseconds

// The layout of Words::kinds. The highest bit is set, so that a slot without an operation differs from all others.
constexpr unsigned kDtypeShift = 8, kOpShift = 16, kPathShift = 24, kOutcomeShift = 28, kRootShift = 31;
constexpr std::uint64_t kUsed = 1ULL << 63, kCame = 1ULL << 30;  // kCame: a part of the operation has come
constexpr std::uint64_t kPathMask = 0xFULL << kPathShift, kOutcomeMask = 0x3ULL << kOutcomeShift;

std::uint64_t kinds_of(const Signature& s) noexcept {
  return kUsed | static_cast<std::uint64_t>(s.collective) | static_cast<std::uint64_t>(s.dtype) << kDtypeShift |
         static_cast<std::uint64_t>(s.op) << kOpShift | static_cast<std::uint64_t>(s.root) << kRootShift;
}

std::uint64_t with_path(std::uint64_t kinds, FlightPath path) noexcept {
  return (kinds & ~kPathMask) | static_cast<std::uint64_t>(path) << kPathShift;
}

std::uint64_t with_outcome(std::uint64_t kinds, FlightOutcome outcome) noexcept {
  return (kinds & ~kOutcomeMask) | static_cast<std::uint64_t>(outcome) << kOutcomeShift;
}

FlightOutcome outcome_in(std::uint64_t kinds) noexcept {
  return static_cast<FlightOutcome>((kinds & kOutcomeMask) >> kOutcomeShift);
}

std::uint64_t to_word(TimePoint at) noexcept {
  return static_cast<std::uint64_t>(at.time_since_epoch().count());
}

std::optional<TimePoint> to_time(std::uint64_t word) noexcept {
  if (word == 0) return std::nullopt;
  return TimePoint(transport::Duration(static_cast<transport::Duration::rep>(word)));
}

}  // namespace

transport::TimePoint coarse_now() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // the steady clock's time, at the kernel's last tick
  return TimePoint(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

FlightRecord::Words FlightRecord::words_of(const Slot& slot) const noexcept {
  Words words{.number = slot.number.load(kAcquire),
              .count = slot.count.load(kAcquire),
              .kinds = slot.kinds.load(kAcquire),
              .queued = slot.queued.load(kAcquire),
              .started = slot.started.load(kAcquire),
              .ended = slot.ended.load(kAcquire)};
  if ((words.kinds & kCame) == 0) return words;
  words.first_byte = slot.first_byte.load(kAcquire);
  words.last_byte = last_bytes_[index_of(slot)].load(kAcquire);
  return words;
}

// The version is odd during the change. Each store is a release, and each load in read() an acquire: a reader that has
// seen a new word also sees the odd version, and a reader that sees the even version sees all words of this change. On
// x86-64 these are plain stores and loads.
template <class Change>
void FlightRecord::change(Slot& slot, Change change) noexcept {
  const std::uint64_t version = slot.version.load(kRelaxed);
  slot.version.store(version + 1, kRelaxed);
  change();
  slot.version.store(version + 2, kRelease);
}

void FlightRecord::write(Slot& slot, const Words& words) noexcept {
  change(slot, [&] {
    slot.number.store(words.number, kRelease);
    slot.count.store(words.count, kRelease);
    slot.kinds.store(words.kinds, kRelease);
    slot.queued.store(words.queued, kRelease);
    slot.started.store(words.started, kRelease);
    slot.ended.store(words.ended, kRelease);
    if ((words.kinds & kCame) == 0) return;
    slot.first_byte.store(words.first_byte, kRelease);
    last_bytes_[index_of(slot)].store(words.last_byte, kRelease);
  });
}

void FlightRecord::end(Slot& slot, std::uint64_t kinds, TimePoint at) noexcept {
  change(slot, [&] {
    slot.kinds.store(kinds, kRelease);
    slot.ended.store(to_word(at), kRelease);
  });
}

std::optional<FlightEntry> FlightRecord::read(const Slot& slot) const {
  for (int i = 0; i < kReadsMax; ++i) {
    const std::uint64_t before = slot.version.load(kAcquire);
    if (before == 0) return std::nullopt;
    const Words w = words_of(slot);
    if (before % 2 != 0 || slot.version.load(kRelaxed) != before) continue;
    if ((w.kinds & kUsed) == 0) return std::nullopt;
    return entry_of(w);
  }
  return std::nullopt;  // the ring passes this entry again and again
}

FlightEntry FlightRecord::entry_of(const Words& w) noexcept {
  return {.number = w.number,
          .signature = {.collective = static_cast<Collective>(w.kinds & 0xFF),
                        .dtype = static_cast<DType>(w.kinds >> kDtypeShift & 0xFF),
                        .op = static_cast<ReduceOp>(w.kinds >> kOpShift & 0xFF),
                        .root = static_cast<std::uint32_t>(w.kinds >> kRootShift),
                        .count = w.count},
          .path = static_cast<FlightPath>((w.kinds & kPathMask) >> kPathShift),
          .outcome = outcome_in(w.kinds),
          .queued = to_time(w.queued),
          .started = to_time(w.started),
          .first_byte = to_time(w.first_byte),
          .last_byte = to_time(w.last_byte),
          .ended = to_time(w.ended)};
}

bool FlightRecord::is_open(const Slot& slot) noexcept {
  const std::uint64_t kinds = slot.kinds.load(kRelaxed);
  return (kinds & kUsed) != 0 && outcome_in(kinds) == FlightOutcome::open;
}

FlightRecord::Slot* FlightRecord::find(std::uint64_t number) noexcept {
  for (Slot* slot : {&slots_[number % kEntries], &passed()}) {
    if ((slot->kinds.load(kRelaxed) & kUsed) != 0 && slot->number.load(kRelaxed) == number) return slot;
  }
  return nullptr;
}

void FlightRecord::enter(const Words& words) noexcept {
  TRIBUTARY_ASSERT(words.number >= called_.load(kRelaxed), "call {} is noted after call {}", words.number,
                   called_.load(kRelaxed) - 1);
  Slot& slot = slots_[words.number % kEntries];
  if (is_open(slot) && !is_open(passed())) [[unlikely]]
    write(passed(), words_of(slot));
  write(slot, words);
  called_.store(words.number + 1, kRelease);
}

void FlightRecord::called(std::uint64_t number, const Signature& signature, TimePoint at) noexcept {
  enter({.number = number, .count = signature.count, .kinds = kinds_of(signature), .queued = to_word(at)});
}

void FlightRecord::began(std::uint64_t number, const Signature& signature, FlightPath path, Times times) noexcept {
  if (operations_.on()) [[unlikely]]
    times.started = transport::Clock::now();  // the caller may have read a coarse clock
  enter({.number = number,
         .count = signature.count,
         .kinds = with_path(kinds_of(signature), path),
         .queued = to_word(times.queued),
         .started = to_word(times.started)});
}

void FlightRecord::started(std::uint64_t number, FlightPath path, TimePoint at) noexcept {
  Slot* const slot = find(number);
  if (slot == nullptr) return;
  Words words = words_of(*slot);
  words.kinds = with_path(words.kinds, path);
  words.started = to_word(at);
  write(*slot, words);
}

// The time of a later part is one word, and needs no version: a reader that sees the word of the slot's next operation
// also sees this next operation's version.
void FlightRecord::came(std::uint64_t number, TimePoint at) noexcept {
  Slot* const slot = find(number);
  if (slot == nullptr) return;
  const std::uint64_t kinds = slot->kinds.load(kRelaxed);
  auto& last_byte = last_bytes_[index_of(*slot)];
  if ((kinds & kCame) != 0) return last_byte.store(to_word(at), kRelease);
  change(*slot, [&] {
    slot->first_byte.store(to_word(at), kRelease);
    last_byte.store(to_word(at), kRelease);
    slot->kinds.store(kinds | kCame, kRelease);
  });
}

// Operations overlap, so an operation adds only its time after the end of those before it. Coarse clocks are exact here
// on average, over many operations.
void FlightRecord::add_busy(std::uint64_t started, std::uint64_t ended) noexcept {
  const std::uint64_t from = std::max(started, last_end_);
  if (started == 0 || ended <= from) return;
  busy_.store(busy_.load(kRelaxed) + (ended - from), kRelaxed);
  last_end_ = ended;
}

void FlightRecord::count(const Slot& slot, FlightPath path, FlightOutcome outcome, TimePoint at) noexcept {
  if (outcome != FlightOutcome::success) return counts_.failed();
  const std::uint64_t kinds = slot.kinds.load(kRelaxed), started = slot.started.load(kRelaxed);
  const Signature signature{.collective = static_cast<Collective>(kinds & 0xFF),
                            .dtype = static_cast<DType>(kinds >> kDtypeShift & 0xFF),
                            .count = slot.count.load(kRelaxed)};
  const auto time = to_word(at) - (started != 0 ? started : slot.queued.load(kRelaxed));
  counts_.succeeded(signature.collective, payload_bytes(signature, origin_.nranks), static_cast<std::size_t>(path),
                    std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
}

void FlightRecord::ended(std::uint64_t number, FlightPath path, FlightOutcome outcome, TimePoint at) noexcept {
  Slot* const slot = find(number);
  if (slot == nullptr) return;
  const bool traced = operations_.on();
  if (traced) [[unlikely]]
    at = transport::Clock::now();
  end(*slot, with_outcome(with_path(slot->kinds.load(kRelaxed), path), outcome), at);
  add_busy(slot->started.load(kRelaxed), to_word(at));
  count(*slot, path, outcome, at);
  if (traced) [[unlikely]]
    operations_.add(words_of(*slot), at);
}

void FlightRecord::fail_open(TimePoint at) noexcept {
  const auto fail = [at](Slot& slot) {
    if (is_open(slot)) end(slot, with_outcome(slot.kinds.load(kRelaxed), FlightOutcome::failure), at);
  };
  for (Slot& slot : slots_) fail(slot);
}

void FlightRecord::failed(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = why;
}

FlightRecord::Snapshot FlightRecord::snapshot() const {
  Snapshot snapshot{.called = called_.load(kAcquire),
                    .entries = {},
                    .failure = {},
                    .busy = std::chrono::nanoseconds(busy_.load(kRelaxed))};
  const auto take = [&](const Slot& slot) {
    if (auto entry = read(slot)) snapshot.entries.push_back(*entry);
  };
  for (const Slot& slot : slots_) take(slot);
  std::ranges::sort(snapshot.entries, {}, &FlightEntry::number);
  const auto same = std::ranges::unique(snapshot.entries, {}, &FlightEntry::number);
  snapshot.entries.erase(same.begin(), same.end());
  const std::lock_guard lock(mutex_);
  snapshot.failure = failure_;
  return snapshot;
}

void FlightRecord::begin_trace(TimePoint until) {
  operations_.begin(until);
  segments_.begin(until);
}

FlightRecord::Trace FlightRecord::take_trace() {
  const auto ended = operations_.take();
  Trace trace{.operations = {}, .operations_lost = ended.lost, .segments = segments_.take()};
  for (const Words& words : ended.events) trace.operations.push_back(entry_of(words));
  for (const FlightEntry& entry : snapshot().entries) {
    if (entry.outcome == FlightOutcome::open) trace.operations.push_back(entry);
  }
  return trace;
}

}  // namespace tributary::client
