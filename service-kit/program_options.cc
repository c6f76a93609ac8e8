#include "service-kit/program_options.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <sstream>

#include "service-kit/nearest_name.h"

namespace tributary::service {
namespace {

constexpr int kUsage = 64;  // sysexits.h
constexpr std::size_t kNamesWidth = 30;
constexpr std::size_t kWidth = 110;

/// Breaks `text` into lines that fit beside the options' names.
std::string beside(const std::string& names, const std::string& text) {
  const std::string indent(kNamesWidth, ' ');
  std::string line = "  " + names;
  std::string all;
  const auto end_line = [&] { all += std::exchange(line, indent) + "\n"; };
  if (text.empty()) return line + "\n";
  if (line.size() + 1 > kNamesWidth) end_line();
  line.resize(kNamesWidth, ' ');
  std::istringstream words(text);
  bool first = true;
  for (std::string word; words >> word; first = false) {
    const bool fits = line.size() + 1 + word.size() <= kWidth;
    if (!first && !fits) end_line();
    line += (first || !fits ? "" : " ") + word;
  }
  end_line();
  return all;
}

/// The layout of all programs' help; packaging/manual/make_pages.py reads this layout.
class HelpLayout : public CLI::Formatter {
 public:
  HelpLayout() {
    column_width(kNamesWidth);
    label("Positionals", "Arguments");
    label("SUBCOMMAND", "COMMAND");
    label("SUBCOMMANDS", "COMMAND");
  }
  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string names = make_option_name(option, is_positional);
    if (!is_positional && option->get_type_size() != 0 && !option->get_type_name().empty())
      names += (option->get_expected_min() == 0 ? " [" : " ") + option->get_type_name() +
               (option->get_expected_min() == 0 ? "]" : "");
    return beside(names, option->get_description());
  }
  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode mode) const override {
    const std::string all = CLI::Formatter::make_subcommands(app, mode);
    const std::string title = "\nSubcommands:\n";
    return all.starts_with(title) ? "\nCommands:\n" + all.substr(title.size()) : all;
  }
  std::string make_subcommand(const CLI::App* sub) const override {
    return beside(sub->get_display_name(true), sub->get_description());
  }
};

const CLI::App* innermost(const CLI::App* app) {
  const auto given = app->get_subcommands();
  return given.empty() ? app : innermost(given.back());
}

std::string words_of(const CLI::App& app, const std::string& program) {
  std::string words = program;
  for (auto given = app.get_subcommands(); !given.empty(); given = given.back()->get_subcommands())
    words += " " + given.back()->get_name();
  return words;
}

/// Returns the text between two words of CLI11's sentence. CLI11's errors have no other data.
std::string between(const std::string& sentence, std::string_view before, std::string_view after) {
  const std::size_t from = before.empty() ? 0 : sentence.find(before) + before.size();
  const std::size_t to = after.empty() ? sentence.size() : sentence.find(after, from);
  return sentence.substr(from, to - from);
}

/// Returns the unexpected word that an error should name: the first option (words after an unknown option are probably
/// its values), or else the first word. `listed` has the unexpected words, the last first, as CLI11 lists them.
std::string first_unexpected(const std::string& listed) {
  std::istringstream words(listed);
  std::string first;
  std::string first_option;
  for (std::string word; words >> word; first = word) {
    if (word.starts_with('-')) first_option = word;
  }
  return first_option.empty() ? first : first_option;
}

/// Returns false for negative numbers, too: these are values.
bool looks_like_an_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && !std::string_view("0123456789.").contains(word[1]);
}

/// Returns the program or command whose options `app` takes, too, or nullptr.
const CLI::App* around(const CLI::App& app) {
  return app.get_fallthrough() ? app.get_parent() : nullptr;
}

/// Returns the option of `app`, or around it, that a word such as `--ranks=2` or `-n2` gives.
const CLI::Option* option_of(const CLI::App& app, const std::string& word) {
  const std::string name = word.starts_with("--") ? word.substr(0, word.find('=')) : word.substr(0, 2);
  for (const CLI::App* at = &app; at != nullptr; at = around(*at)) {
    if (const CLI::Option* const option = at->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

bool takes_no_word(const CLI::App& app) {
  const auto is_positional = [](const CLI::Option* option) { return option->get_positional(); };
  const auto options = app.get_options();
  return std::ranges::none_of(options, is_positional);
}

template <class Kind>
bool is(const CLI::ParseError& error) {
  return dynamic_cast<const Kind*>(&error) != nullptr;
}

}  // namespace

void use_help_style(CLI::App& app) {
  app.formatter(std::make_shared<HelpLayout>());
  app.set_help_flag("-h,--help", "Print this help, and exit");
}

std::string shown_name(std::string_view names) {
  std::string shown;
  for (std::size_t from = 0; from < names.size();) {
    const std::size_t comma = std::min(names.find(',', from), names.size());
    const std::string_view one = names.substr(from, comma - from);
    if (shown.empty() || (one.starts_with("--") && !shown.starts_with("--"))) shown = one;
    from = comma + 1;
  }
  return shown;
}

std::string number_text(double number) {
  std::ostringstream out;
  out.precision(15);
  out << number;
  return out.str();
}

CLI::Option* described(CLI::Option* option, const OptionText& text) {
  std::string bracket = text.allowed;
  if (!text.standard.empty()) bracket += (bracket.empty() ? "default: " : "; default: ") + text.standard;
  return option->type_name(text.value)->description(text.help + (bracket.empty() ? "" : " [" + bracket + "]"));
}

CLI::Option* add_text(CLI::App& app, const std::string& names, std::string& into, const OptionText& text) {
  return described(app.add_option(names, into), text);
}

Mistake unknown_argument(const CLI::App& app, const std::string& argument) {
  const bool is_option = argument.starts_with('-');
  std::vector<std::string> names;
  if (is_option) {
    for (const CLI::App* at = &app; at != nullptr; at = around(*at)) {
      for (const CLI::Option* option : at->get_options()) {
        if (option->nonpositional()) names.push_back(option->get_name());
      }
    }
  } else {
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
      names.push_back(sub->get_name());
  }
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (is_option) return unknown_key("", argument.substr(0, argument.find('=')), "option", views);
  if (!names.empty()) return unknown_key("", argument, "command", views);
  return {.value = argument, .why = "it is one argument too many", .allowed = "no further argument"};
}

std::optional<Mistake> misspelt_option(const CLI::App& app, std::span<const std::string> arguments) {
  const CLI::App* command = &app;
  for (std::size_t i = 0; i < arguments.size() && arguments[i] != "--"; ++i) {
    const std::string& word = arguments[i];
    if (!looks_like_an_option(word)) {
      const auto named = command->get_subcommands([&](const CLI::App* sub) { return sub->check_name(word); });
      if (!named.empty()) {
        command = named.front();
      } else if (takes_no_word(*command)) {
        return {};  // it is the word that is wrong
      }
      continue;
    }
    const CLI::Option* const option = option_of(*command, word);
    if (option == nullptr) return unknown_argument(*command, word);
    const bool has_value = word.contains('=') || (!word.starts_with("--") && word.size() > 2);
    if (!has_value) i += static_cast<std::size_t>(option->get_items_expected_min());
  }
  return {};
}

Mistake mistake_of(const CLI::ParseError& error, const CLI::App& app, const std::string& program) {
  const std::string where = words_of(app, program);
  const std::string sentence = error.what();
  const std::string more = "see " + where + " --help";
  if (const auto* wrong = dynamic_cast<const WrongUse*>(&error)) {
    Mistake mistake = wrong->mistake();
    mistake.where = where;
    return mistake;
  }
  if (is<CLI::ExtrasError>(error)) {
    Mistake mistake = unknown_argument(*innermost(&app), first_unexpected(between(sentence, "expected: ", "")));
    mistake.where = where;
    return mistake;
  }
  if (is<CLI::RequiredError>(error)) {
    const std::string key = between(sentence, "", " is required");
    return {.where = where, .key = key == "A subcommand" ? "COMMAND" : key, .why = "it is missing", .allowed = more};
  }
  if (is<CLI::RequiresError>(error)) {
    return {.where = where,
            .key = between(sentence, "", " requires "),
            .why = "it needs " + between(sentence, " requires ", "") + ", too",
            .allowed = "both or none"};
  }
  if (is<CLI::ExcludesError>(error)) {
    return {.where = where,
            .key = between(sentence, "", " excludes "),
            .why = "it contradicts " + between(sentence, " excludes ", ""),
            .allowed = "one of the two"};
  }
  if (is<CLI::ArgumentMismatch>(error))
    return {.where = where, .key = between(sentence, "", ":"), .why = "its value is missing", .allowed = more};
  return {.where = where, .why = sentence};
}

int answer(const CLI::ParseError& error, const CLI::App& app, const std::string& program,
           std::span<const std::string> arguments) {
  if (error.get_exit_code() == 0) return app.exit(error);
  const std::string where = words_of(app, program);
  auto mistake = misspelt_option(app, arguments);
  if (mistake) mistake->where = where;
  if (!mistake) mistake = mistake_of(error, app, program);
  std::fprintf(stderr, "%s\nRun %s --help for what there is.\n", to_string(*mistake).c_str(), where.c_str());
  return kUsage;
}

int answer(const CLI::ParseError& error, const CLI::App& app, const std::string& program, int argc,
           const char* const* argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return answer(error, app, program, arguments);
}

}  // namespace tributary::service
