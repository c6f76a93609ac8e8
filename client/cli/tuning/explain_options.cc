#include "client/cli/tuning/explain_options.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "client/cli/options/typed_options.h"
#include "client/cli/tuning/explain.h"
#include "client/cli/tuning/explain_codes.h"
#include "service-kit/nearest_name.h"
#include "service-kit/program_options.h"
#include "service-kit/units.h"
#include "tributary/protocol/frame.h"

namespace tributary::cli {
namespace {

using service::add_number;
using service::add_parsed;
using service::add_text;

/// The subject of the command: a collective or a reason.
struct Subject {
  std::optional<Collective> collective{};
  Reason reason = Reason::none;
};

std::string collectives_text() {
  std::string text;
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i)
    text += (i == 0 ? "" : ", ") + std::string(to_string(static_cast<Collective>(i)));
  return text;
}

Result<Subject> parse_subject(const std::string& word) {
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
    const auto collective = static_cast<Collective>(i);
    if (same_letters(to_string(collective), word)) return Subject{.collective = collective};
  }
  if (const Reason reason = reason_of(word); reason != Reason::none) return Subject{.reason = reason};
  std::vector<std::string_view> names;
  for (std::uint8_t i = 0; i < kCollectiveCount; ++i) names.push_back(to_string(static_cast<Collective>(i)));
  for (const ReasonRow& row : kReasons) names.push_back(row.code);
  const auto meant = service::nearest_name(word, names, service::letters_misspelt_max(word.size()));
  return fail(Errc::bad_argument, "it is none of these" + (meant ? "; is '" + std::string(*meant) + "' meant?" : ""));
}

}  // namespace

void describe_explain(CLI::App& app, std::function<int()>& action) {
  auto* sub = app.add_subcommand("explain",
                                 "Say which path an operation takes, and why, or what the code of a reason means; "
                                 "contacts no other process");
  sub->footer(
      "Example: tributary explain all_reduce --bytes 64K --ranks 8 --link-rate 10Gbit/s\n"
      "Example: tributary explain no-token");
  const auto options = std::make_shared<ExplainOptions>();
  const auto subject = std::make_shared<Subject>();
  const auto* const word = add_parsed(*sub, "subject", *subject,
                                      {.value = "NAME",
                                       .help = "The collective, or the code of a reason",
                                       .allowed = collectives_text() + ", or a code that --codes lists"},
                                      parse_subject);
  const auto codes = std::make_shared<bool>(false);
  sub->add_flag("--codes", *codes, "List the codes of all reasons");
  const auto* const bytes =
      add_bytes(*sub, "--bytes,-b", options->bytes, "Size of the larger of the collective's two buffers");
  add_number(*sub, "--ranks,-n", options->ranks, 1, kRanksMax,
             {.value = "N", .help = "Number of ranks", .standard = "8"});
  add_dtype(*sub, "-d,--dtype", options->dtype, "Element type", "float32");
  add_parsed(*sub, "--numerics", options->numerics,
             {.value = "WORD",
              .help = "How sums of floats are rounded",
              .allowed = "fast, wide or exact",
              .standard = "TRIBUTARY_NUMERICS, else fast"},
             [](const std::string& text) -> Result<std::optional<Numerics>> {
               if (const auto numerics = numerics_from_string(text)) return numerics;
               return fail(Errc::bad_argument, "it is none of these");
             });
  add_text(*sub, "--tuning", options->tuning,
           {.value = "WORD",
            .help = "How to choose the path",
            .allowed = "auto, model, off or the path of a tuning table",
            .standard = "TRIBUTARY_TUNING, else auto"});
  add_parsed(*sub, "--link-rate", options->link_bits,
             {.value = "RATE",
              .help = "Rate of each rank's link; 0bit/s: all ranks are on one host",
              .allowed = "a rate such as 10Gbit/s",
              .standard = "this host's"},
             service::parse_rate);
  add_number(*sub, "--cores", options->cores, 1, 65536,
             {.value = "N", .help = "Cores of each host", .standard = "this machine's number"});
  add_number(*sub, "--ranks-per-host", options->ranks_per_host, 1, 65536,
             {.value = "N",
              .help = "The most ranks on one host; equal to --ranks: all ranks are on one host",
              .standard = "1"});
  add_parsed(*sub, "--output,-o", options->json,
             {.value = "FORM", .help = "Form of the output", .allowed = "table or json", .standard = "table"},
             [](const std::string& text) -> Result<bool> {
               if (text == "table" || text == "json") return text == "json";
               return fail(Errc::bad_argument, "it is none of these");
             });
  sub->callback([=, &action] {
    if (*codes) {
      action = [options] { return list_codes(options->json); };
    } else if (subject->reason != Reason::none) {
      action = [=] { return explain_code(subject->reason, options->json); };
    } else {
      if (word->empty()) throw CLI::RequiredError("subject");
      if (bytes->empty()) throw CLI::RequiredError("--bytes");
      options->collective = *subject->collective;
      action = [options] { return explain(*options); };
    }
  });
}

}  // namespace tributary::cli
