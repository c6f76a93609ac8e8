#pragma once
// The options of all programs: the form of their help, and of their sentences about mistakes. The programs use CLI11,
// whose own checks do not show the value, and show the allowed values in several forms.
//
//   -n,--ranks N                Number of copies of the command [1 to 64]
//   tributary run: --ranks: '0': it is below 1 (allowed: 1 to 64)
#include <CLI/CLI.hpp>
#include <concepts>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "service-kit/mistake.h"
#include "service-kit/units.h"
#include "tributary/protocol/error.h"

namespace tributary::service {

/// The texts of an option that takes a value, for the help.
struct OptionText {
  std::string value;       // word for the value: N, FILE, SECONDS
  std::string help;        // without a full stop at its end
  std::string allowed{};   // empty: any value of this kind
  std::string standard{};  // value if the option is not given; empty: none
};

/// A mistake in the use of options.
class WrongUse : public CLI::ParseError {
 public:
  explicit WrongUse(Mistake mistake)
      : CLI::ParseError("WrongUse", to_string(mistake), CLI::ExitCodes::ValidationError),
        mistake_(std::move(mistake)) {}
  [[nodiscard]] const Mistake& mistake() const noexcept { return mistake_; }

 private:
  Mistake mistake_;
};

/// Sets the layout of the help of `app`, and of the subcommands that `app` gets from now on.
void use_help_style(CLI::App& app);

/// Returns the mistake that `app` does not accept `argument`: an unknown option or command, or one argument too many.
[[nodiscard]] Mistake unknown_argument(const CLI::App& app, const std::string& argument);

/// Returns the first argument of a program that has the form of an option but is no option, with its place.
/// CLI11 would take the word after it for an argument, and complain about that word.
[[nodiscard]] std::optional<Mistake> misspelt_option(const CLI::App& app, std::span<const std::string> arguments);

/// Returns the mistake for an error of CLI11. Its `where` is `program` with the given subcommands.
[[nodiscard]] Mistake mistake_of(const CLI::ParseError& error, const CLI::App& app, const std::string& program);

/// Prints the help or the version if the caller asked for it, and returns 0; else prints the mistake, and returns 64. A
/// misspelt option is the mistake that counts. `arguments`: the program's, without its name.
[[nodiscard]] int answer(const CLI::ParseError& error, const CLI::App& app, const std::string& program,
                         std::span<const std::string> arguments);
[[nodiscard]] int answer(const CLI::ParseError& error, const CLI::App& app, const std::string& program, int argc,
                         const char* const* argv);

/// Gives an option its texts.
CLI::Option* described(CLI::Option* option, const OptionText& text);

/// Returns the texts of an option that sets the row `key` of a table of settings (settings_table.h).
template <class Table>
[[nodiscard]] OptionText text_of(const Table& table, std::string_view key, const char* value) {
  for (const auto& field : table) {
    if (field.key != key) continue;
    std::string_view help = field.help;
    if (help.ends_with('.')) help.remove_suffix(1);
    return {.value = value, .help = std::string(help), .allowed = field.allowed, .standard = "the configuration's"};
  }
  return {.value = value, .help = {}};
}

/// Adds an option with any text.
CLI::Option* add_text(CLI::App& app, const std::string& names, std::string& into, const OptionText& text);

/// Returns the name that sentences use for an option with these names: the long name.
[[nodiscard]] std::string shown_name(std::string_view names);

/// Adds an option whose value `parse` reads. It returns a Result; the error's message is the reason of a refusal.
template <class T, class Parse>
CLI::Option* add_parsed(CLI::App& app, const std::string& names, T& into, const OptionText& text, const Parse& parse) {
  const auto read = [&into, parse, name = shown_name(names), allowed = text.allowed](const std::string& written) {
    const auto value = parse(written);
    if (!value) throw WrongUse({.key = name, .value = written, .why = value.error().message, .allowed = allowed});
    into = *value;
  };
  return described(app.add_option_function<std::string>(names, read), text);
}

/// Returns a number as text, without zeros at its end.
[[nodiscard]] std::string number_text(double number);

/// Reads a number from `low` to `high`.
template <class Number>
[[nodiscard]] Result<Number> parse_within(std::string_view text, Number low, Number high) {
  const auto value = parse_number<Number>(text);
  if (!value) return fail(Errc::bad_argument, std::integral<Number> ? "it is no whole number" : "it is no number");
  if (!(*value >= low)) return fail(Errc::bad_argument, "it is below " + number_text(static_cast<double>(low)));
  if (!(*value <= high)) return fail(Errc::bad_argument, "it is above " + number_text(static_cast<double>(high)));
  return *value;
}

/// Adds an option that takes a number. Without `text.allowed`, the help names the bounds.
template <class Number>
CLI::Option* add_number(CLI::App& app, const std::string& names, Number& into, std::type_identity_t<Number> low,
                        std::type_identity_t<Number> high, OptionText text) {
  if (text.allowed.empty())
    text.allowed = number_text(static_cast<double>(low)) + " to " + number_text(static_cast<double>(high));
  const auto check = [low, high, allowed = text.allowed](const std::string& written) -> std::string {
    const auto value = parse_within<Number>(written, low, high);
    if (value) return {};
    return to_string({.value = written, .why = value.error().message, .allowed = allowed});
  };
  return described(app.add_option(names, into)->check(CLI::Validator(check, "")), text);
}

}  // namespace tributary::service
