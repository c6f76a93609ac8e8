#include "client/tuning/size_class.h"

#include <bit>
#include <cmath>

#include "client/tuning/tree_segments.h"
#include "tributary/protocol/assert.h"

namespace tributary::tuning {
namespace {

/// The least part of the time that a trial must save to win: medians of a few operations differ by almost as much.
constexpr double kGain = 0.04;
/// The same for a trial of the ranks alone: it is small, because no choice may be slower than they are.
constexpr double kGainOfRanks = 0.01;
/// The least part of the time that a new choice must still save when its first operations confirm it.
constexpr double kGainConfirmed = 0.02;
/// The least part of the time that a moved share must save. It is small, because the times of both parts show that the
/// direction is right.
constexpr double kGainOfBalance = 0.01;
/// If a trial's fastest operation is slower than the choice in use by this factor, the trial ends: after two operations
/// with the first factor, after one with the second.
constexpr double kHopeless = 1.5;
constexpr double kHopelessAtOnce = 3;
/// If a trial's slowest operation takes at most this part of the present choice's time, the trial ends early.
constexpr double kObvious = 0.8;
/// If the model expects a path to take this multiple of the measured time, the path has no trial. If the model knows
/// the links' rates, it rarely expects more time than the path really takes.
constexpr double kRuledOut = 2;
constexpr double kRuledOutByRates = 1.25;
/// If the choice in use takes as long as the model expects from the links' rates, up to the first factor, the model
/// knows these links. If it expects the ranks alone to take at least the second factor of this time, their first trial
/// waits until it costs little: otherwise a job of long operations would spend its first seconds in the trial.
constexpr double kAsExpected = 1.1;
constexpr double kDeferredFrom = 1.05;
constexpr double kWorse = Alarm::kWorse;
/// The part of the time that trials of a path may cost.
constexpr double kCostOfTrials = 0.01;
/// If two operations become slower by this factor, the class reacts at once.
constexpr double kAlarm = 1.5;
/// If a split's trees take longer than its ranks by this factor, the class reacts to one operation. A late rank would
/// delay both parts.
constexpr double kSudden = 2.5;
/// While a class rests, as many short operations as take the first time pass between two decisions, at most the second
/// number. A decision sorts its times, which costs as much as a short operation.
constexpr double kPaceUs = 5'000;
constexpr double kPassedOverMost = 1'000;
/// If a split is slower than the links by this factor, another limit is likely: in most cases processors.
constexpr double kBusy = 1.05;
/// The factor by which the times of a split's parts may differ.
constexpr double kOutOfBalance = 1.12;
/// The least share of each part, out of kWholeShare: a smaller share costs more time in steps than it saves.
constexpr std::uint32_t kLeastShare = kWholeShare / 32;
/// The difference of two shares that prospects compare: an eighth of the least share.
constexpr std::uint32_t kShareStep = kLeastShare / 8;
/// From this number of a lane's segments on, the time of a split's part is proportional to its bytes.
constexpr std::uint32_t kManySegments = 4;
/// From this size on, an operation's time is proportional to its bytes.
constexpr std::uint64_t kBytesCount = 64 << 10;

std::uint64_t class_end(std::uint64_t size) noexcept {
  return std::bit_ceil(size);
}

std::uint32_t share_of(double part) noexcept {
  return static_cast<std::uint32_t>(std::lround(std::clamp(part, 0.0, 1.0) * kWholeShare));
}

/// Returns the time after which trials of this cost may be repeated.
Adaptation::Duration earned(double cost_us) {
  return std::chrono::duration_cast<Adaptation::Duration>(
      std::chrono::duration<double, std::micro>(cost_us / kCostOfTrials));
}

/// Returns the time of a split's slower part, divided by the faster part's time. `ratio`: the trees' time divided by
/// the ranks' time.
double out_of_balance(double ratio) noexcept {
  return std::max(ratio, 1 / ratio);
}

bool is_split(std::uint32_t share) noexcept {
  return share >= kLeastShare && share <= kWholeShare - kLeastShare;
}

/// Returns the least time of a split on the ranks' links; `alone_us` is the time of the ranks alone. A byte through
/// trees crosses a rank's link once; a byte between the ranks crosses it 2 (N-1) / N times.
double on_links(double share, double alone_us, std::uint32_t ranks) noexcept {
  return alone_us * (1 - share + share * ranks / (2.0 * (ranks - 1)));
}

Choice choice_of(const Step& step) noexcept {
  return {step.path, step.path == Path::split ? step.tree_share : 0};
}

double part_of(std::uint32_t share) noexcept {
  return static_cast<double>(share) / kWholeShare;
}

}  // namespace

Adaptation::SizeClass::SizeClass(Collective collective, std::uint64_t size, const Step& in_use, const Step& wanted)
    : collective_(collective),
      size_(size),
      above_(size == 1 ? 0 : class_end(size) / 2),
      upto_(class_end(size)),
      algorithm_(wanted.algorithm),
      best_(choice_of(wanted)),
      told_(choice_of(in_use)),
      asks_first_(best_ != told_),
      pass_over_(kPassedOver) {
  TRIBUTARY_ASSERT(above_ < size && size <= upto_, "size {} is not in the class above {} and up to {}", size, above_,
                   upto_);
}

Amendment Adaptation::SizeClass::amendment(const Choice& choice) const noexcept {
  return {.collective = collective_,
          .above = above_,
          .step = {.bytes_max = upto_, .path = choice.path, .algorithm = algorithm_, .tree_share = choice.tree_share}};
}

void Adaptation::SizeClass::note(const MeasuredOperation& o) {
  spent_us_ += o.time_us;
  if (!agreed_ || asks_first_ || o.number < from_operation_) return;
  // The ranks may have rounded a split to one of its paths: then its times are what this choice takes.
  if (o.path != in_effect().path && in_effect().path != Path::split) return;
  // Scale times to one size: sizes of one class differ by up to a factor of two, and long operations take time in
  // proportion to their bytes.
  const double scale = o.bytes < kBytesCount ? 1 : static_cast<double>(upto_) / static_cast<double>(o.bytes);
  if (pass_over_ > 0) {
    --pass_over_;
    return;
  }
  if (const auto mean = overlapping_.add(o, scale)) samples_.add(*mean);
}

void Adaptation::SizeClass::took_effect(std::uint64_t first) {
  TRIBUTARY_ASSERT(!agreed_, "operation {}: the ranks had nothing to agree on", first);
  agreed_ = true;
  samples_.clear();
  overlapping_.clear();
  pass_over_ = 1;  // the first operation makes the buffers and connections of the path
  if (first != kNever) {
    told_ = in_effect();
    from_operation_ = first;
    return;
  }
  best_ = told_;
  trial_.reset();
  challenger_.reset();
  beaten_.reset();
  balances_ = false;
}

Decision Adaptation::SizeClass::decide(const Figures& figures, std::uint32_t ranks, TimePoint now) {
  if (std::exchange(asks_first_, false)) return ask_first();
  if (!agreed_ || pass_over_ > 0 || samples_.size() == 0) return std::nullopt;
  return trial_ ? judge_trial(figures, ranks, now) : judge_steady(figures, ranks, now);
}

Decision Adaptation::SizeClass::ask_first() {
  TRIBUTARY_ASSERT(agreed_ && !trial_ && best_ != told_, "path {} is asked for, but is in use already", best_.path);
  agreed_ = false;
  return best_;
}

Decision Adaptation::SizeClass::judge_trial(const Figures& figures, std::uint32_t ranks, TimePoint now) {
  const double rival_us = challenger_ ? challenger_->time_us : best_us_;
  const std::size_t n = samples_.size();
  const bool hopeless = samples_.least() > (n >= 2 ? kHopeless : kHopelessAtOnce) * rival_us;
  const bool obvious = n >= 2 && samples_.are_long() && samples_.greatest() < kObvious * rival_us;
  if (!samples_.decide() && !hopeless && !obvious) return std::nullopt;
  if (std::exchange(balances_, false)) return end_balance(figures, now);
  return challenger_ ? end_return(figures, ranks, now) : end_trial(figures, ranks, now);
}

/// Returns the part of the time that a choice must save to win against another choice, whose median has this error.
double Adaptation::SizeClass::gain_needed(double least, double error) const {
  return std::max(least, samples_.are_long() ? 0 : std::hypot(samples_.error(), error));
}

/// Returns the factor on the part of the time that a change of path must save. Long operations hardly differ by chance.
double Adaptation::SizeClass::constancy(TimePoint now) const {
  return samples_.are_long() ? 1 : constancy_.factor(now);
}

/// Returns when a trial may run again, if an operation took `difference_us` more or less by it than without it.
Adaptation::TimePoint Adaptation::SizeClass::earliest_next(double difference_us, TimePoint now) const {
  return now + earned(std::abs(difference_us) * static_cast<double>(samples_.size()));
}

Decision Adaptation::SizeClass::end_balance(const Figures& figures, TimePoint now) {
  const double median = samples_.median(&Samples::Times::whole_us);
  won_ = median < best_us_ * (1 - gain_needed(kGainOfBalance, error_));
  moved_in_vain_ = won_ ? 1 : moved_at_;
  if (won_) {
    win({*trial_, median, samples_.error()}, now);
  } else {
    balance_at_ = std::max(now + rest_, earliest_next(median - best_us_, now));
  }
  trial_.reset();
  const Decision further = won_ ? balance(figures, now) : std::nullopt;
  return further ? further : rest();
}

/// Ends a trial, or its first part. If trees or a split seem to win, the old choice returns for some operations,
/// because other load on the hosts may have slowed down only one of the two choices. The ranks alone win at once: no
/// operation may take longer than without trees.
Decision Adaptation::SizeClass::end_trial(const Figures& figures, std::uint32_t ranks, TimePoint now) {
  const Timed it{*trial_, samples_.median(&Samples::Times::whole_us), samples_.error()};
  know(it.choice, it.time_us);
  const bool by_ranks = it.choice.path == Path::ranks;
  const double needed =
      by_ranks ? gain_needed(kGainOfRanks * constancy(now), error_) : constancy(now) * gain_needed(kGain, error_);
  const bool ahead = it.time_us < best_us_ * (1 - needed);
  if (ahead && !by_ranks) {
    challenger_ = it;
    return try_out(best_);
  }
  const Path loser = ahead ? best_.path : it.choice.path;
  not_before_[static_cast<std::size_t>(loser)] = earliest_next(it.time_us - best_us_, now);
  if (ahead) win(it, now);
  won_ = ahead;
  trial_.reset();
  return next(figures, ranks, now);
}

/// Ends the return of the old choice. The new choice wins if it was quicker than the old choice before and after it.
Decision Adaptation::SizeClass::end_return(const Figures& figures, std::uint32_t ranks, TimePoint now) {
  const Timed old{best_, samples_.median(&Samples::Times::whole_us), samples_.error()};
  const Timed it = *std::exchange(challenger_, std::nullopt);
  const double least_us = std::min(old.time_us, best_us_);
  const bool wins = it.time_us < least_us * (1 - constancy(now) * gain_needed(kGain, it.error));
  const Path loser = wins ? best_.path : it.choice.path;
  not_before_[static_cast<std::size_t>(loser)] = earliest_next(it.time_us - old.time_us, now);
  trial_.reset();
  if (!wins) {
    best_us_ = old.time_us;
    error_ = old.error;
    return next(figures, ranks, now);
  }
  beaten_ = Timed{best_, least_us, old.error};
  win(it, now);
  agreed_ = false;
  return best_;
}

void Adaptation::SizeClass::win(const Timed& it, TimePoint now) {
  if (it.choice.path != best_.path) constancy_.path_changed(now);
  best_ = it.choice;
  best_us_ = chosen_us_ = it.time_us;
  error_ = it.error;
}

/// Returns how many of the last measurements show by themselves that the choice has become slow: two long operations,
/// or five means of long operations that overlap; 0 if none do. Short operations are slow by chance too often, and
/// enough of them to decide as usual take only 50 ms. In a split whose ranks take longest, a stall of one connection
/// may be the cause: the class waits until it can decide as usual.
std::size_t Adaptation::SizeClass::operations_became_slow(TimePoint now) const {
  const std::size_t last = overlapping_.abreast() == 1 ? 2 : kSamples;
  if (chosen_us_ == 0 || samples_.size() < last || !samples_.are_long()) return 0;
  const double least_us = samples_.least_of_last(last);
  if (least_us <= kAlarm * chosen_us_ || !alarm_.may_ring(least_us, now)) return 0;
  const bool by_ranks = best_.path == Path::split && samples_.last().trees_us <= samples_.last().ranks_us;
  return by_ranks ? 0 : last;
}

/// Returns whether the last operation shows by itself that trees have become slow. A single slow operation may be
/// chance, so the class waits longer after each such decision before it makes another.
bool Adaptation::SizeClass::trees_became_slow(TimePoint now) {
  if (best_.path != Path::split || chosen_us_ == 0 || now < sudden_at_) return false;
  const Samples::Times& last = samples_.last();
  if (last.whole_us <= kAlarm * chosen_us_ || last.trees_us <= kSudden * last.ranks_us) return false;
  sudden_at_ = now + std::exchange(sudden_rest_, std::min<Duration>(2 * sudden_rest_, kRestLast));
  return true;
}

Decision Adaptation::SizeClass::judge_steady(const Figures& figures, std::uint32_t ranks, TimePoint now) {
  const std::size_t slow = operations_became_slow(now);
  const bool sudden = slow == 0 && trees_became_slow(now);
  if (slow > 0 || sudden) samples_.keep_last(sudden ? 1 : slow);
  if (!samples_.decide() && slow == 0 && !sudden) return std::nullopt;
  best_us_ = samples_.median(&Samples::Times::whole_us);
  error_ = samples_.error();
  if (beaten_) {
    if (const Decision back = confirm(now)) return back;
  }
  if (sudden) return balance(figures, now);
  if (chosen_us_ == 0 || best_us_ < chosen_us_) chosen_us_ = best_us_;
  if (samples_.lower_quartile() > kWorse * chosen_us_ && alarm_.may_ring(best_us_, now)) {
    alarm_.ring(best_, best_us_);
    chosen_us_ = best_us_;
    rest_until_ = balance_at_ = now;
    not_before_ = {};
    rest_ = kRestFirst;
  }
  if (best_.path == Path::split) {
    if (const Decision moved = balance(figures, now)) return moved;
    learn_from_parts(figures);
  }
  if (now >= rest_until_) return next(figures, ranks, now);
  if (!samples_.are_long()) {  // not each short operation is worth a decision
    samples_.keep_last(samples_.size() / 2);
    overlapping_.clear();
    pass_over_ = static_cast<std::uint32_t>(std::min(kPaceUs / best_us_, kPassedOverMost));
  }
  return std::nullopt;
}

/// Judges a new choice once more, by its first operations after it won: by chance it may have been quick before.
Decision Adaptation::SizeClass::confirm(TimePoint now) {
  const Timed old = *std::exchange(beaten_, std::nullopt);
  if (best_us_ < old.time_us * (1 - kGainConfirmed)) {
    chosen_us_ = best_us_;
    won_ = true;
    return std::nullopt;
  }
  know(best_, best_us_);
  win(old, now);
  agreed_ = false;
  return best_;
}

/// Computes from the time of the trees' part the time of trees alone, so that they need no trial. A part of few
/// segments takes longer for its bytes than the whole operation would: then the model and a trial have to tell.
void Adaptation::SizeClass::learn_from_parts(const Figures& figures) {
  if (tree_segments(figures, upto_, best_.tree_share) < kManySegments * figures.lanes) return;
  known_us_[static_cast<std::size_t>(Path::tree)] =
      samples_.median(&Samples::Times::trees_us) / part_of(best_.tree_share);
}

void Adaptation::SizeClass::know(const Choice& choice, double time_us) {
  known_us_[static_cast<std::size_t>(choice.path)] = time_us;
  if (choice.path == Path::split) split_share_ = choice.tree_share;
}

/// Moves the share of a split so that both parts end together.
Decision Adaptation::SizeClass::balance(const Figures& figures, TimePoint now) {
  const double trees = samples_.median(&Samples::Times::trees_us), between = samples_.median(&Samples::Times::ranks_us);
  if (trees <= 0 || between <= 0) return std::nullopt;
  const double ratio = trees / between;
  if (out_of_balance(ratio) < kOutOfBalance) return std::nullopt;
  const bool as_before =
      (ratio > 1) == (moved_in_vain_ > 1) && out_of_balance(ratio) < kWorse * out_of_balance(moved_in_vain_);
  if (now < balance_at_ && as_before) return std::nullopt;
  const double share = part_of(best_.tree_share);
  const double by_trees = share / trees, by_ranks = (1 - share) / between;
  const std::uint32_t moved = share_of(by_trees / (by_trees + by_ranks));
  // If a path would get the whole operation, trials compare the paths alone. If the ranks would cut the operation where
  // they cut it now, the move changes nothing.
  if (!is_split(moved) || moved == best_.tree_share || !divides(figures, upto_, moved)) return std::nullopt;
  if (tree_segments(figures, upto_, moved) == tree_segments(figures, upto_, best_.tree_share)) return std::nullopt;
  moved_at_ = ratio;
  balances_ = true;
  return try_out({Path::split, moved});
}

/// Starts the trial of the next path of the round, then of smaller shares. After the last trial, the class rests with
/// the best choice.
Decision Adaptation::SizeClass::next(const Figures& figures, std::uint32_t ranks, TimePoint now) {
  tried_[static_cast<std::size_t>(best_.path)] = true;
  know(best_, best_us_);
  const double ruled_out = figures.trees_gbits > 0 ? kRuledOutByRates : kRuledOut;
  for (const Path path : {Path::ranks, Path::tree, Path::split}) {
    if (std::exchange(tried_[static_cast<std::size_t>(path)], true)) continue;
    if (now < not_before_[static_cast<std::size_t>(path)]) continue;
    const auto it = prospect(path, figures, ranks);
    if (!it || it->time_us >= (path == Path::split ? 1 - kGain : ruled_out) * best_us_) continue;
    if (path == Path::ranks && defer_ranks(it->time_us, figures, ranks)) continue;
    return try_out(it->choice);
  }
  if (const auto it = prospect_of_less(figures, ranks); it && it->time_us < (1 - kGain) * best_us_) {
    least_tried_ = it->choice.tree_share;
    return try_out(it->choice);
  }
  alarm_.round_ended(best_, now);
  tried_ = {};
  least_tried_ = kWholeShare;
  known_us_ = {};
  rest_until_ = now + std::exchange(rest_, std::min<Duration>(2 * rest_, kRestLast));
  return rest();
}

/// Defers the first trial of the ranks alone if the model can be trusted to say what it would cost. Returns whether the
/// trial must still wait. Only the time of operations counts: pauses between operations do not bring the trial nearer.
bool Adaptation::SizeClass::defer_ranks(double ranks_us, const Figures& figures, std::uint32_t ranks) {
  const bool first = not_before_[static_cast<std::size_t>(Path::ranks)] == TimePoint{};
  if (!first || figures.trees_gbits <= 0) return false;
  const double expected = modelled_us(best_.path, figures, ranks);
  const bool as_expected = best_us_ < kAsExpected * expected && expected < kAsExpected * best_us_;
  if (!as_expected || ranks_us < kDeferredFrom * best_us_) return false;
  if (ranks_deferred_us_ == 0) ranks_deferred_us_ = spent_us_ + (ranks_us - best_us_) * kSamples / kCostOfTrials;
  return spent_us_ < ranks_deferred_us_;
}

Decision Adaptation::SizeClass::rest() {
  samples_.clear();
  if (told_ == best_) return std::nullopt;
  agreed_ = false;
  return best_;
}

Decision Adaptation::SizeClass::try_out(const Choice& choice) {
  TRIBUTARY_ASSERT(choice != told_, "path {} is tried, but is in use already", choice.path);
  trial_ = choice;
  agreed_ = false;
  return choice;
}

std::optional<Adaptation::SizeClass::Prospect> Adaptation::SizeClass::prospect(Path path, const Figures& figures,
                                                                               std::uint32_t ranks) const {
  if (path == Path::split) return prospect_of_split(figures, ranks);
  return Prospect{{path, 0}, expected_us(path, figures, ranks)};
}

/// Returns the time that was measured in this round. Without a measurement, returns the model's time or, if it is less,
/// the model's time corrected by the model's error for the choice in use.
double Adaptation::SizeClass::expected_us(Path path, const Figures& figures, std::uint32_t ranks) const {
  if (const double known = known_us_[static_cast<std::size_t>(path)]; known > 0) return known;
  const double of_best = modelled_us(best_.path, figures, ranks);
  const double asked = modelled_us(path, figures, ranks);
  return of_best > 0 ? std::min(asked, asked * best_us_ / of_best) : asked;
}

double Adaptation::SizeClass::modelled_us(Path path, const Figures& figures, std::uint32_t ranks) const {
  const Call call{.collective = collective_, .ranks = ranks, .bytes = upto_};
  const std::size_t abreast = overlapping_.abreast();
  const Call stream{.collective = collective_, .ranks = ranks, .bytes = abreast * upto_};
  if (path == Path::tree) return estimate_tree(figures, stream).time_us() / static_cast<double>(abreast);
  const auto has = algorithms_of(figures, collective_);
  const Algorithm algorithm = std::ranges::find(has, algorithm_) != has.end() ? algorithm_ : has.front();
  const double alone = estimate_ranks(figures, call, algorithm).time_us();
  if (path == Path::ranks) return alone;
  const auto split = estimate_split(figures, call, algorithm);
  return split ? split->time_us() : alone;
}

/// Returns half of the share that was measured in this round, if the split took longer than the links need. Trees give
/// the processors more work, so a smaller share may be quicker than this share and than no share.
std::optional<Adaptation::SizeClass::Prospect> Adaptation::SizeClass::prospect_of_less(const Figures& figures,
                                                                                       std::uint32_t ranks) const {
  const double split = known_us_[static_cast<std::size_t>(Path::split)];
  if (split <= 0 || !is_split(split_share_ / 2) || !divides(figures, upto_, split_share_ / 2)) return std::nullopt;
  const double alone = expected_us(Path::ranks, figures, ranks);
  const std::uint32_t less = split_share_ / 2;
  if (less >= least_tried_ || split < kBusy * on_links(part_of(split_share_), alone, ranks)) return std::nullopt;
  return Prospect{{Path::split, less}, on_links(part_of(less), alone, ranks)};
}

/// Returns the model's time of a part of an operation through trees, divided by its time of the whole operation. Trees
/// first fill their levels, so a part takes more of the time than of the bytes; but operations that overlap fill them
/// only once.
double Adaptation::SizeClass::time_of_trees_part(double part, const Figures& figures, std::uint32_t ranks) const {
  const auto bytes = static_cast<double>(upto_ * overlapping_.abreast());
  const auto model = [&](double of) {
    const Call call{.collective = collective_, .ranks = ranks, .bytes = static_cast<std::uint64_t>(of * bytes)};
    return estimate_tree(figures, call).time_us();
  };
  return model(part) / model(1);
}

/// Returns the share with which a split takes the least time, if it divides the operation. The ranks' links carry share
/// + (1 - share) x 2 (N-1) / N of the vector, and may be the limit.
std::optional<Adaptation::SizeClass::Prospect> Adaptation::SizeClass::prospect_of_split(const Figures& figures,
                                                                                        std::uint32_t ranks) const {
  if (!can_split(collective_) || upto_ <= figures.segment_bytes) return std::nullopt;
  const double trees = expected_us(Path::tree, figures, ranks), between = expected_us(Path::ranks, figures, ranks);
  if (trees <= 0 || between <= 0) return std::nullopt;
  const double ratio = 2.0 * (ranks - 1) / ranks;
  double link = std::min(trees, between / ratio);
  if (figures.link_gbits > 0) link = std::min(link, static_cast<double>(upto_) / (figures.link_gbits * 125));
  const auto quickest = [&](auto by_trees) {
    std::optional<Prospect> best;
    for (std::uint32_t share = kLeastShare; is_split(share); share += kShareStep) {
      if (!divides(figures, upto_, share)) continue;
      const auto bytes = static_cast<double>(tree_segments(figures, upto_, share) * figures.segment_bytes);
      const double part = std::min(1.0, bytes / static_cast<double>(upto_));
      const double time_us =
          std::max({trees * by_trees(part), between * (1 - part), link * (part + (1 - part) * ratio)});
      if (!best || time_us < best->time_us) best = Prospect{{Path::split, share}, time_us};
    }
    return best;
  };
  const auto it = quickest([&](double part) { return time_of_trees_part(part, figures, ranks); });
  if (it && it->time_us < (1 - kGain) * best_us_) return it;
  return quickest([](double part) { return part; });  // the links may be quicker than the model says
}

}  // namespace tributary::tuning
