#pragma once
// Options that several commands have: names, types, lanes, sizes and rates.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "service-kit/program_options.h"
#include "tributary/protocol/error.h"
#include "tributary/protocol/types.h"

namespace tributary::cli {

/// True if two names differ only in case, hyphens and underscores, because MPI, NCCL and PyTorch use different
/// spellings: AllReduce, allreduce, all-reduce, all_reduce.
[[nodiscard]] bool same_letters(std::string_view left, std::string_view right);

/// Adds an option whose value is one of `number` names.
template <class T, class Find, class Name>
CLI::Option* add_named(CLI::App& app, const std::string& names, T& into, service::OptionText text, std::uint8_t number,
                       Find find, Name name) {
  for (std::uint8_t i = 0; i < number; ++i)
    text.allowed += (i == 0 ? "" : i + 1 == number ? " or " : ", ") + std::string(name(static_cast<T>(i)));
  return service::add_parsed(app, names, into, text, [find, name, number](const std::string& written) -> Result<T> {
    if (const auto value = find(written)) return *value;
    for (std::uint8_t i = 0; i < number; ++i) {
      if (same_letters(name(static_cast<T>(i)), written)) return static_cast<T>(i);
    }
    return fail(Errc::bad_argument, "it is none of these");
  });
}

CLI::Option* add_dtype(CLI::App& app, const std::string& names, DType& into, const std::string& help,
                       const std::string& standard);

/// Adds --lanes, which accepts the values of TRIBUTARY_LANES. `into` is 0 for auto.
void add_lanes(CLI::App& app, std::uint32_t& into, const std::string& help);

/// Adds an option that takes a size such as 64M.
CLI::Option* add_bytes(CLI::App& app, const std::string& names, std::uint64_t& into, const std::string& help,
                       const std::string& standard = {});

/// Reads a rate from `low` to `high` bit/s.
[[nodiscard]] Result<std::uint64_t> parse_rate_within(const std::string& text, std::uint64_t low, std::uint64_t high);

}  // namespace tributary::cli
