#pragma once
// A group of three ranks and its aggregators, one of whom lies. Whatever it says, the others must neither crash nor
// read or write where they must not, and each must come to an end, good or bad.
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "client/communicator/communicator.h"

namespace tributary::fuzz {

struct LiedToSettings {
  std::uint32_t aggregators = 1;
  client::PathMode path = client::PathMode::automatic;
  bool kill_an_aggregator = false;  // when the input says
  bool talk = false;                // ranks send each other messages besides
  bool lose_a_device = false;       // ranks have devices and a second way, and one loses its own when the input says
};

void play_lied_to(std::span<const std::uint8_t> input, const std::string& liar,
                  const std::function<bool(FrameType)>& about, const LiedToSettings& settings);

}  // namespace tributary::fuzz
