#pragma once
// Ranks as threads of one process, on one mapping of one arena: so a race between ranks is a race between threads, and
// ThreadSanitizer detects it.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "client/collectives/local/local_group.h"

namespace tributary::client::local {

/// Returns settings with so small rows that tests go through every row many times.
[[nodiscard]] inline GroupSettings settings_of(std::uint32_t ranks,
                                               std::chrono::nanoseconds timeout = std::chrono::seconds(60)) {
  return {.ranks = ranks,
          .note_bytes = 256,
          .chunk_bytes = 8192,
          .timeout = timeout,
          .host = "here",
          .crowded = ranks > usable_cores()};
}

inline void run_ranks(GroupSettings settings, const std::function<void(LocalGroup&)>& body) {
  auto arena = create_arena(settings);
  ASSERT_TRUE(arena) << arena.error().message;
  std::vector<std::unique_ptr<LocalGroup>> groups;
  for (settings.rank = 0; settings.rank < settings.ranks; ++settings.rank)
    groups.push_back(std::make_unique<LocalGroup>(*arena, settings));
  std::vector<std::thread> threads;
  for (auto& group : groups) threads.emplace_back([&] { body(*group); });
  for (auto& thread : threads) thread.join();
}

}  // namespace tributary::client::local
