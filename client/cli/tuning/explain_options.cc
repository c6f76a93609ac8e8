#include "client/cli/tuning/explain_options.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "client/cli/options/typed_options.h"
#include "client/cli/tuning/explain.h"
#include "service-kit/program_options.h"
#include "service-kit/units.h"
#include "tributary/protocol/frame.h"

namespace tributary::cli {
namespace {

using service::add_number;
using service::add_parsed;
using service::add_text;

}  // namespace

void describe_explain(CLI::App& app, std::function<int()>& action) {
  auto* sub = app.add_subcommand("explain", "Say which path an operation takes, and why; contacts no other process");
  sub->footer("Example: tributary explain all_reduce --bytes 64K --ranks 8 --link-rate 10Gbit/s");
  const auto options = std::make_shared<ExplainOptions>();
  add_named(
      *sub, "collective", options->collective, {.value = "NAME", .help = "The collective"}, kCollectiveCount,
      [](const std::string& name) -> std::optional<Collective> {
        for (std::uint8_t i = 0; i < kCollectiveCount; ++i) {
          if (to_string(static_cast<Collective>(i)) == name) return static_cast<Collective>(i);
        }
        return std::nullopt;
      },
      [](Collective c) { return to_string(c); })
      ->required();
  add_bytes(*sub, "--bytes,-b", options->bytes, "Size of the larger of its two buffers")->required();
  add_number(*sub, "--ranks,-n", options->ranks, 1, kRanksMax,
             {.value = "N", .help = "Number of ranks", .standard = "8"});
  add_dtype(*sub, "-d,--dtype", options->dtype, "Element type", "float32");
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
  sub->callback([options, &action] { action = [options] { return explain(*options); }; });
}

}  // namespace tributary::cli
