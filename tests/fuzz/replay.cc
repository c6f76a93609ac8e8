// Runs a fuzz target without libFuzzer: every kept input, then mutations of each from fixed seeds, so that every
// compiler and every sanitizer of the ordinary test run sees the inputs that the fuzzers have kept.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/fuzz/kept_inputs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;
constexpr unsigned long kMutationsOfEach = 64;
constexpr std::size_t kBytesMax = 1U << 16;

// Copies the input to a buffer of exactly the same length, so that a sanitizer detects a read beyond its end.
void run(const Input& input) {
  const Input exact(input);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

Input mutated(Input input, std::mt19937_64& random) {
  const auto at = [&] { return random() % (input.size() + 1); };
  for (std::uint64_t changes = 1 + random() % 4; changes != 0; --changes) {
    const auto place = static_cast<std::ptrdiff_t>(at());
    switch (random() % 5) {
      case 0:
        if (!input.empty()) input[random() % input.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
        break;
      case 1:
        if (!input.empty()) input[random() % input.size()] = static_cast<std::uint8_t>(random());
        break;
      case 2:
        input.resize(at());
        break;
      case 3:
        input.insert(input.begin() + place, static_cast<std::uint8_t>(random()));
        break;
      default: {
        const std::size_t length = std::min<std::size_t>(random() % 64, input.size() - static_cast<std::size_t>(place));
        const Input piece(input.begin() + place, input.begin() + place + static_cast<std::ptrdiff_t>(length));
        input.insert(input.begin() + static_cast<std::ptrdiff_t>(at()), piece.begin(), piece.end());
      }
    }
  }
  if (input.size() > kBytesMax) input.resize(kBytesMax);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr,
                 "usage: %s FILE [MUTATIONS]: runs every input that FILE holds, and MUTATIONS mutations of each\n",
                 argv[0]);
    return 64;
  }
  const unsigned long mutations = argc == 3 ? std::strtoul(argv[2], nullptr, 10) : kMutationsOfEach;
  const auto inputs = tributary::fuzz::read_kept_inputs(argv[1]);
  if (!inputs) {
    std::fprintf(stderr, "%s\n", inputs.error().c_str());
    return 1;
  }
  std::mt19937_64 random(1);
  run({});
  for (const auto& [name, input] : *inputs) {
    run(input);
    for (unsigned long i = 0; i < mutations; ++i) run(mutated(input, random));
  }
  std::printf("%zu inputs, %zu mutations\n", inputs->size(), inputs->size() * mutations);
}
