#include "client/tuning/adaptation.h"

#include <utility>

#include "client/tuning/size_class.h"
#include "tributary/protocol/assert.h"

namespace tributary::tuning {
namespace {
/// The least time between two agreements, as a multiple of an agreement's time: ranks stand still while they agree.
constexpr int kAmendmentsApart = 10;
/// A class is worth tuning if its operations take at least this part of the time of all classes.
constexpr double kWorthwhile = 0.02;
}  // namespace

Adaptation::Adaptation(const Figures& figures, std::uint32_t ranks, Policy policy)
    : figures_(figures), ranks_(ranks), policy_(std::move(policy)), wanted_(policy_) {}
Adaptation::~Adaptation() = default;

Adaptation::SizeClass& Adaptation::class_of(const MeasuredOperation& o) {
  for (const auto& it : classes_) {
    if (it->holds(o.collective, o.bytes)) return *it;
  }
  return *classes_.emplace_back(make_class(o.collective, o.bytes));
}

std::unique_ptr<Adaptation::SizeClass> Adaptation::make_class(Collective collective, std::uint64_t size) const {
  return std::make_unique<SizeClass>(collective, size, policy_.at(collective, size), wanted_.at(collective, size));
}

void Adaptation::begin_again(const Figures& figures, Policy wanted) {
  figures_ = figures;
  wanted_ = std::move(wanted);
  begins_again_ = pending_.has_value();
  if (!begins_again_) restart_classes();
}

void Adaptation::restart_classes() {
  TRIBUTARY_ASSERT(!pending_, "{} classes begin again while the ranks agree on an amendment", classes_.size());
  spent_us_ = 0;
  for (auto& it : classes_) it = make_class(it->collective(), it->size());
}

std::optional<Amendment> Adaptation::add(const MeasuredOperation& o, TimePoint now) {
  if (o.bytes == 0 || ranks_ < 2 || !in_network_capable(o.collective)) return std::nullopt;
  SizeClass& size_class = class_of(o);
  size_class.note(o);
  spent_us_ += o.time_us;
  if (size_class.spent_us() < kWorthwhile * spent_us_) return std::nullopt;
  if (pending_ || now < next_amendment_at_) return std::nullopt;
  const Decision decision = size_class.decide(figures_, ranks_, now);
  if (auto won = size_class.take_news()) news_ = won;
  if (!decision) return std::nullopt;
  pending_ = size_class.amendment(*decision);
  pending_class_ = &size_class;
  asked_at_ = now;
  return pending_;
}

void Adaptation::took_effect(std::uint64_t first, TimePoint now) {
  TRIBUTARY_ASSERT(pending_ && pending_class_ != nullptr, "operation {}: the ranks agreed on no amendment", first);
  if (first != kNever) policy_ = amended(policy_, *pending_);
  pending_.reset();
  next_amendment_at_ = now + kAmendmentsApart * (now - asked_at_);
  std::exchange(pending_class_, nullptr)->took_effect(first);
  if (std::exchange(begins_again_, false)) restart_classes();
}

}  // namespace tributary::tuning
