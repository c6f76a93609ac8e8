#pragma once
// A group of three ranks and its aggregators; one of these processes lies. The other processes must neither crash nor
// read or write outside their buffers, and each must end, with or without an error.
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "client/communicator/communicator.h"

namespace tributary::fuzz {

struct LiedToSettings {
  std::uint32_t aggregators = 1;
  client::PathMode path = client::PathMode::automatic;
  bool kill_an_aggregator = false;  // at a time from the input
  bool talk = false;                // ranks also send each other messages
  // true: ranks have devices and a second way, and one rank loses its device at a time from the input.
  bool lose_a_device = false;
};

void play_lied_to(std::span<const std::uint8_t> input, const std::string& liar,
                  const std::function<bool(FrameType)>& about, const LiedToSettings& settings);

}  // namespace tributary::fuzz
