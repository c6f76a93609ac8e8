#pragma once
// The way on which an operation would have been quicker, by the cost model.
//
// Nobody has measured the model's figures on this cluster, so only its ratios are used: an operation that took t on a
// way with the estimate e would have taken t x e' / e on a way with the estimate e'. Such a ratio means little where the
// time of messages decides, so there is no answer for short operations.
#include <optional>

#include "client/tuning/cost_model.h"

namespace tributary::tuning {

enum class Quicker : std::uint8_t {
  between_ranks,  // no tree
  present_trees,  // the trees that are in use
  wide_trees,     // trees over aggregators that carry as much as the links of the ranks
};
[[nodiscard]] const char* text_of(Quicker way) noexcept;

/// An operation as it went.
struct PresentWay {
  Call call;
  bool in_network = false;          // trees carried it, or a part of it
  bool trees_in_use = false;        // the figures are those of trees in use
  bool other_path_untried = false;  // the tuning does not try the other path of the ranks by itself
};

struct QuickerWay {
  Quicker way = Quicker::wide_trees;
  double ratio = 1;  // the time that the operation would take, as a part of the time that it takes; below 1
};

/// Returns the quickest other way. Returns nullopt if none takes less than kWorthSaying of the present time, if the
/// ranks have no link between them, or if the time of messages decides.
[[nodiscard]] std::optional<QuickerWay> quicker_way(const Figures& figures, const PresentWay& present);
inline constexpr double kWorthSaying = 0.85;

}  // namespace tributary::tuning
