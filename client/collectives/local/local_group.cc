#include "client/collectives/local/local_group.h"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "client/control/time_out.h"
#include "tributary/protocol/assert.h"

namespace tributary::client::local {

namespace {

/// With more ranks than cores, chunks are faster.
AttachRule attach_rule(const GroupSettings& settings) noexcept {
  if (settings.attach == tuning::AttachUse::never) return {.forbidden = "TRIBUTARY_CMA=off"};
  if (settings.crowded) return {.forbidden = "there are more ranks than cores"};
  return {.if_quick = settings.attach == tuning::AttachUse::if_quick};
}

constexpr std::uint32_t kRoundsMax = 16;
constexpr std::chrono::seconds kWithdrawLimit{10};
// Bounds of the sizes: more than any useful size, yet so small that the bytes of a layout fit into 64 bits for every
// number of ranks.
constexpr std::size_t kSizesMax = std::size_t{1} << 30, kDepthMax = 1024;
static_assert(kRanksMax <= 1U << 20);

/// Returns a number that grows with the rank's progress through all calls.
std::uint64_t progress_of(const ProgressLine& line) noexcept {
  return line.offered.load(std::memory_order_relaxed) + line.reduced.load(std::memory_order_relaxed) +
         line.taken.load(std::memory_order_relaxed);
}

LateLog::Tell tell_into(const std::shared_ptr<LateLines>& lines) {
  if (!lines) return {};
  return [lines](const std::string& line, bool late) { lines->add({line, late}); };
}

}  // namespace

Layout layout_of(const GroupSettings& settings) noexcept {
  return {settings.ranks, settings.note_bytes, std::max(settings.chunk_bytes, std::size_t{settings.ranks} * kLineBytes),
          settings.depth};
}

bool can_be(const GroupSettings& settings) noexcept {
  return settings.ranks <= kRanksMax && settings.note_bytes <= kSizesMax && settings.chunk_bytes > 0 &&
         settings.chunk_bytes <= kSizesMax && settings.depth > 0 && settings.depth <= kDepthMax;
}

Result<std::shared_ptr<Arena>> create_arena(const GroupSettings& settings) {
  const Layout layout = layout_of(settings);
  auto arena = Arena::create(layout.bytes());
  if (!arena) return arena;
  // The arena is all zero, and zero is the initial state of every field that is not set here.
  ArenaHeader& header = Places((*arena)->bytes().data(), layout).header();
  header.magic = kArenaMagic;
  header.ranks = settings.ranks;
  header.note_bytes = settings.note_bytes;
  header.chunk_bytes = settings.chunk_bytes;
  header.depth = settings.depth;
  return arena;
}

LocalGroup::LocalGroup(std::shared_ptr<Arena> arena, GroupSettings settings, std::vector<FileDescriptor> processes,
                       Inboxes inboxes)
    : arena_(std::move(arena)),
      settings_(std::move(settings)),
      processes_(std::move(processes)),
      places_(arena_->bytes().data(), layout_of(settings_)),
      bell_(places_.header()),
      direct_(arena_, places_, settings_.rank, settings_.ranks, std::move(inboxes), processes_, attach_rule(settings_)),
      exact_inputs_(settings_.ranks),
      late_watch_({.members = settings_.ranks,
                   .ranks = settings_.ranks,
                   .name_of = [this](std::uint32_t rank) { return name_of(rank); }},
                  tell_into(settings_.late), [this](std::uint32_t rank) {
                    return rank < processes_.size() ? folder_of_descriptor(processes_[rank].number()) : std::string();
                  }) {
  TRIBUTARY_ASSERT(places_.layout().bytes() <= arena_->bytes().size(), "{} bytes of places in an arena of {}",
                   places_.layout().bytes(), arena_->bytes().size());
}

LocalGroup::~LocalGroup() {
  direct_.regions()->close();
  bell_.publish(places_.progress(settings_.rank).gone, std::uint32_t{1});
}

void LocalGroup::begin(const Call& call) noexcept {
  TRIBUTARY_ASSERT(!running_, "rank {} begins a call while another runs", settings_.rank);
  running_ = true;
  outcome_ = {};
  call_ = call;
  movement_ = Movement(call, settings_.rank, settings_.ranks, places_.layout(), exact_inputs_);
  noted_ = 0;
  agreed_ = false;
  waits_since_.reset();
  late_watch_.begin();
  first_chunk_ = end_chunk_;
  end_chunk_ += movement_.chunks();
  mode_ = Mode::chunks;
  ++sequence_;
  Note& note = places_.note(settings_.rank, sequence_);
  note.count = call.signature.count;
  note.root = call.signature.root;
  note.collective = static_cast<std::uint8_t>(call.signature.collective);
  note.dtype = static_cast<std::uint8_t>(call.signature.dtype);
  note.op = static_cast<std::uint8_t>(call.signature.op);
  if (movement_.by_notes()) {
    movement_.write_note(places_.noted(settings_.rank, sequence_, movement_.offered_bytes()));
  } else if (direct_.offer(call_, movement_, note.few)) {
    mode_ = Mode::undecided;
  }
  bell_.publish(note.sequence, sequence_);
}

bool LocalGroup::reached(Counter counter, Reach& reach, std::uint64_t mark) const noexcept {
  if (reach.mark != mark) reach = {mark, 0};
  for (; reach.ranks < settings_.ranks; ++reach.ranks) {
    if ((places_.progress(reach.ranks).*counter).load(std::memory_order_seq_cst) < mark) return false;
  }
  return true;
}

namespace {

Signature signature_of(const Note& note) noexcept {
  return {static_cast<Collective>(note.collective), static_cast<DType>(note.dtype), static_cast<ReduceOp>(note.op),
          note.root, note.count};
}

}  // namespace

// Compares every rank with rank 0. All ranks compare the same notes, so all ranks make the same text.
void LocalGroup::report_mismatch() {
  MismatchReport report{.operation = call_.number, .rank_a = 0, .a = signature_of(places_.note(0, sequence_))};
  for (std::uint32_t r = 1; r < settings_.ranks; ++r) {
    report.b = signature_of(places_.note(r, sequence_));
    report.rank_b = r;
    if (report.b != report.a) return fail({Errc::mismatch, to_string(report)});
  }
}

bool LocalGroup::all_noted() noexcept {
  if (agreed_) return true;
  for (; noted_ < settings_.ranks; ++noted_, ++steps_) {
    const Note& note = places_.note(noted_, sequence_);
    if (note.sequence.load(std::memory_order_seq_cst) != sequence_) return false;
  }
  for (std::uint32_t r = 0; r < settings_.ranks; ++r) {
    if (signature_of(places_.note(r, sequence_)) == call_.signature) continue;
    report_mismatch();
    return false;
  }
  return agreed_ = true;
}

// Each step publishes its progress before the next step begins, so that the other ranks can go on. The number of rounds
// is bounded because the driver may have other work, too.
bool LocalGroup::advance_chunks() noexcept {
  ProgressLine& mine = places_.progress(settings_.rank);
  const std::uint64_t depth = places_.layout().depth();
  bool moved = true;
  for (std::uint32_t rounds = 0; moved && taken_ < end_chunk_ && rounds < kRoundsMax; ++rounds) {
    moved = false;
    // Stay one chunk ahead of the reduction: a second chunk ahead would push the first chunk out of the cache.
    if (offered_ < end_chunk_ && offered_ < taken_ + 2 &&
        (offered_ < depth || reached(&ProgressLine::taken, others_taken_, offered_ - depth + 1))) {
      movement_.offer(places_, offered_ - first_chunk_, offered_);
      bell_.publish(mine.offered, ++offered_);
      moved = true;
    }
    if (!all_noted()) return false;
    if (movement_.reduces()) {
      if (reduced_ < offered_ && reached(&ProgressLine::offered, others_offered_, reduced_ + 1)) {
        movement_.reduce(places_, reduced_ - first_chunk_, reduced_);
        bell_.publish(mine.reduced, ++reduced_);
        if (!movement_.takes()) bell_.publish(mine.taken, ++taken_);
        moved = true;
      }
      if (movement_.takes() && taken_ < reduced_ && reached(&ProgressLine::reduced, others_reduced_, taken_ + 1)) {
        movement_.take(places_, taken_ - first_chunk_, taken_);
        bell_.publish(mine.taken, ++taken_);
        moved = true;
      }
    } else if (taken_ < offered_ && reached(&ProgressLine::offered, others_offered_, taken_ + 1)) {
      movement_.take(places_, taken_ - first_chunk_, taken_);
      mine.reduced.store(++reduced_, std::memory_order_relaxed);
      bell_.publish(mine.taken, ++taken_);
      moved = true;
    }
    steps_ += moved ? 1 : 0;
  }
  return taken_ == end_chunk_;
}

/// Returns whether a direct call has ended; nullopt if the call goes by chunks.
std::optional<bool> LocalGroup::advance_direct() noexcept {
  if (mode_ == Mode::undecided) {
    if (!all_noted()) return false;
    const auto agreed = direct_.agree(sequence_);
    if (!agreed) {
      fail(agreed.error());
      return false;
    }
    mode_ = *agreed ? Mode::direct : Mode::chunks;
    if (mode_ == Mode::chunks) return std::nullopt;
    end_chunk_ = first_chunk_;
    direct_calls_.store(direct_calls() + 1, std::memory_order_relaxed);
  }
  const std::uint64_t moved = direct_.moved();
  const auto over = direct_.advance(bell_);
  steps_ += direct_.moved() - moved;
  if (!over) {
    fail({over.error().code, over.error().message + "; missing in " + name_of_call()});
    return false;
  }
  return *over;
}

bool LocalGroup::has_ended(std::uint32_t rank) const noexcept {
  if (rank >= processes_.size()) return false;
  pollfd process{.fd = processes_[rank].number(), .events = POLLIN, .revents = 0};
  return poll(&process, 1, 0) > 0 && (process.revents & POLLIN) != 0;
}

// After a failure every rank leaves the buffers after its present piece. If a process stands still within a piece, this
// rank waits for it for kWithdrawLimit at most: when that process goes on, it still ends its piece.
bool LocalGroup::others_are_out() noexcept {
  if (mode_ == Mode::chunks) return true;
  for (std::uint32_t r = 0; r < settings_.ranks; ++r) {
    if (r == settings_.rank || places_.progress(r).inside.load(std::memory_order_seq_cst) == 0 || has_ended(r))
      continue;
    const TimePoint now = std::chrono::steady_clock::now();
    if (!withdraws_since_) withdraws_since_ = now;
    if (now - *withdraws_since_ < kWithdrawLimit) return false;
  }
  mode_ = Mode::chunks;
  return true;
}

void LocalGroup::withdraw() noexcept {
  while (running_ && failed() && !others_are_out()) std::this_thread::yield();
}

bool LocalGroup::end(Status status) noexcept {
  late_watch_.end(status.has_value());
  outcome_ = std::move(status);
  running_ = false;
  return true;
}

bool LocalGroup::advance() noexcept {
  if (!running_) return true;
  if (failed()) [[unlikely]]
    return others_are_out() && end(std::unexpected(failure_here()));
  if (movement_.by_notes()) {
    if (all_noted()) {
      movement_.read_notes(places_, sequence_);
      return end({});
    }
    return false;
  }
  if (mode_ != Mode::chunks) {
    if (const auto over = advance_direct()) return *over && end({});
  }
  return advance_chunks() && end({});
}

const Status& LocalGroup::run(const Call& call) {
  begin(call);
  return finish();
}

const Status& LocalGroup::finish() {
  Wait wait(bell_, settings_.crowded);
  for (std::uint64_t before = steps_; !advance(); before = steps_) {
    if (steps_ != before) wait.again();
    if (wait.pause([this] { return advance(); })) inspect();
  }
  return outcome_;
}

// True if the call waits for work that the rank has not done.
bool LocalGroup::lacks(std::uint32_t rank) const noexcept {
  if (!running_ || rank == settings_.rank) return false;
  if (!has_called(rank)) return true;
  if (movement_.by_notes() || mode_ == Mode::undecided) return false;
  if (mode_ == Mode::direct) return direct_.waits_for(rank);
  const ProgressLine& line = places_.progress(rank);
  const std::uint64_t depth = places_.layout().depth();
  const std::uint64_t next = movement_.reduces() ? reduced_ : taken_;
  if (line.offered.load(std::memory_order_seq_cst) <= next && next < end_chunk_) return true;
  if (movement_.reduces() && line.reduced.load(std::memory_order_seq_cst) <= taken_ && taken_ < reduced_) return true;
  return offered_ < end_chunk_ && offered_ >= depth &&
         line.taken.load(std::memory_order_seq_cst) < offered_ - depth + 1;
}

std::string LocalGroup::name_of(std::uint32_t rank) const {
  const std::uint32_t name = settings_.known_as.empty() ? rank : settings_.known_as[rank];
  return "rank " + std::to_string(name) + " on host " + settings_.host;
}

std::string LocalGroup::name_of_call() const {
  return "operation " + std::to_string(call_.number) + " (" + to_string(call_.signature) + ")";
}

bool LocalGroup::has_called(std::uint32_t rank) const noexcept {
  return places_.note(rank, sequence_).sequence.load(std::memory_order_seq_cst) == sequence_;
}

/// Returns the late rank: of the ranks for which this rank waits, the one with the least progress. Only a rank that
/// waits for all lower ranks returns one, so that one rank writes the line.
std::optional<std::uint32_t> LocalGroup::latest() const noexcept {
  std::optional<std::uint32_t> latest;
  std::uint64_t least = 0;
  for (std::uint32_t r = 0; r < settings_.ranks; ++r) {
    if (r == settings_.rank) continue;
    if (!lacks(r)) {
      if (r < settings_.rank) return std::nullopt;
      continue;
    }
    const std::uint64_t progress = progress_of(places_.progress(r));
    if (latest && progress >= least) continue;
    latest = r;
    least = progress;
  }
  return latest;
}

void LocalGroup::inspect() {
  if (!running_ || failed()) return;
  std::vector<pollfd> ended;
  for (std::uint32_t r = 0; r < processes_.size(); ++r) {
    if (r != settings_.rank) ended.push_back({.fd = processes_[r].number(), .events = POLLIN, .revents = 0});
  }
  if (!ended.empty() && poll(ended.data(), ended.size(), 0) > 0) {
    std::size_t at = 0;
    for (std::uint32_t r = 0; r < processes_.size(); ++r) {
      // Skip a rank that had done its part of the call before it ended.
      if (r == settings_.rank || (ended[at++].revents & POLLIN) == 0 || !lacks(r)) continue;
      return fail({Errc::peer_gone, name_of(r) + " is gone: its process has ended; missing in " + name_of_call()});
    }
  }
  for (std::uint32_t r = 0; r < settings_.ranks; ++r) {
    if (places_.progress(r).gone.load(std::memory_order_acquire) == 0 || !lacks(r)) continue;
    return fail({Errc::peer_gone, name_of(r) + " has left the communicator; missing in " + name_of_call()});
  }
  const TimePoint now = std::chrono::steady_clock::now();
  if (!waits_since_ || steps_ != steps_seen_) {
    waits_since_ = now;
    steps_seen_ = steps_;
    absences_.begin(now);
    return;
  }
  absences_.look(now);
  late_watch_.look(
      {.call = call_.number, .since = *waits_since_, .absences = absences_},
      [this] {
        const auto rank = latest();
        return rank ? std::optional(LateWatch::Late{.rank = *rank, .has_called = has_called(*rank)}) : std::nullopt;
      },
      now);
  if (*waits_since_ > absences_.ago(settings_.timeout, now)) return;
  std::string who;
  for (std::uint32_t r = 0; r < settings_.ranks; ++r) {
    if (lacks(r)) who += (who.empty() ? "" : ", ") + name_of(r);
  }
  fail({Errc::timed_out, timed_out_after(settings_.timeout) + who + " did not come; missing in " + name_of_call()});
}

void LocalGroup::fail(const Error& error) noexcept {
  ArenaHeader& header = places_.header();
  FailureState none = FailureState::none;
  if (!header.failure.compare_exchange_strong(none, FailureState::being_written, std::memory_order_acq_rel)) return;
  header.failure_code = static_cast<std::uint32_t>(error.code);
  const std::size_t bytes = std::min(error.message.size(), kFailureTextBytes - 1);
  std::memcpy(header.failure_text, error.message.data(), bytes);
  header.failure_text[bytes] = '\0';
  header.failure.store(FailureState::written, std::memory_order_seq_cst);  // pairs with failure()
  bell_.ring();
}

// Adds the call to an error that did not come from a call of this group.
Error LocalGroup::failure_here() const {
  Error error = failure();
  if (!error.message.contains("operation ")) error.message += "; here " + name_of_call();
  return error;
}

// The rank that wrote the failure may have died before its text was whole: then only its death is known.
Error LocalGroup::failure() const {
  ArenaHeader& header = places_.header();
  const TimePoint limit = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (header.failure.load(std::memory_order_acquire) != FailureState::written) {
    if (std::chrono::steady_clock::now() > limit)
      return {Errc::peer_gone, "a rank on host " + settings_.host + " died while it failed"};
    relax();
  }
  std::string text(header.failure_text, strnlen(header.failure_text, kFailureTextBytes));
  return {static_cast<Errc>(header.failure_code), std::move(text)};
}

void LocalGroup::count(BytesBetweenHosts bytes) noexcept {
  TRIBUTARY_ASSERT(settings_.rank == 0, "rank {} writes the counts of rank 0", settings_.rank);
  ArenaHeader& header = places_.header();
  const auto add = [](std::atomic<std::uint64_t>& count, std::uint64_t more) {
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);  // only this rank writes it
  };
  add(header.bytes_in_network, bytes.in_network);
  add(header.bytes_between_ranks, bytes.between_ranks);
}

BytesBetweenHosts LocalGroup::bytes_between_hosts() const noexcept {
  // The order comes from the result that the rank takes: its note or chunk is stored with release.
  return {.in_network = places_.header().bytes_in_network.load(std::memory_order_relaxed),
          .between_ranks = places_.header().bytes_between_ranks.load(std::memory_order_relaxed)};
}

}  // namespace tributary::client::local
