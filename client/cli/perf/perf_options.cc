#include "client/cli/perf/perf_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "client/cli/options/typed_options.h"
#include "client/cli/perf/exact_pattern.h"
#include "client/cli/perf/perf_command.h"
#include "service-kit/program_options.h"
#include "tributary/protocol/frame.h"
#include "tributary/protocol/numerics.h"

namespace tributary::cli {
namespace {

using service::add_number;
using service::add_parsed;
using service::add_text;

}  // namespace

void describe_perf(CLI::App& app, std::function<int()>& action) {
  auto* sub = app.add_subcommand("perf", "Measure and check a collective; one rank per process");
  sub->footer(
      "Start it by tributary run, mpirun, srun or torchrun. Sizes are bytes, with K, M or G for powers of 1024.");
  const auto options = std::make_shared<PerfOptions>();
  BenchSettings& bench = options->bench;
  add_named(*sub, "collective", bench.call.collective, {.value = "NAME", .help = "The collective to measure"},
            kPerfCollectiveCount, perf_collective_from_string, [](PerfCollective c) { return to_string(c); })
      ->required();
  add_bytes(*sub, "-b,--minbytes", options->bytes_min, "The first size", "32M");
  add_bytes(*sub, "-e,--maxbytes", options->bytes_max, "The last size", "32M");
  add_bytes(*sub, "-i,--stepbytes", options->bytes_step, "Step from size to size, without -f", "1M");
  add_number(*sub, "-f,--stepfactor", options->factor, 2, 1U << 20,
             {.value = "N", .help = "Factor from size to size", .standard = "none: steps of -i"});
  add_number(*sub, "-n,--iters", bench.iterations, 1, 1U << 30,
             {.value = "N", .help = "Timed operations", .standard = "20"});
  add_number(*sub, "-w,--warmup", bench.warmup, 0, 1U << 30,
             {.value = "N", .help = "Operations before the timed ones", .standard = "5"});
  add_dtype(*sub, "-d,--datatype", bench.call.dtype, "Element type", "float32");
  add_named(*sub, "-o,--op", bench.call.op, {.value = "OPERATOR", .help = "Reduction", .standard = "sum"},
            kReduceOpCount, reduce_op_from_string, [](ReduceOp o) { return to_string(o); });
  add_number(*sub, "-r,--root", bench.call.root, 0, kRanksMax - 1,
             {.value = "RANK", .help = "Root of the rooted collectives", .standard = "0"});
  add_parsed(
      *sub, "-c,--check", bench.check,
      {.value = "WORD",
       .help = "1: check every result; 0: check none; exact: compare every bit with the exact sum, rounded once, "
               "of values whose rounded sums depend on the order (TRIBUTARY_NUMERICS=exact)",
       .allowed = "0, 1 or exact",
       .standard = "1"},
      [&exact = bench.call.exact](const std::string& text) -> Result<bool> {
        exact = text == "exact";
        if (text == "0" || text == "1" || exact) return text != "0";
        return fail(Errc::bad_argument, "it is none of these");
      });
  add_parsed(
      *sub, "--memory", options->gpu_memory,
      {.value = "WORD",
       .help = "Memory of the buffers; cuda: of the GPU whose number is LOCAL_RANK modulo the number of GPUs. The "
               "copies that fill the buffers and check the results are not timed",
       .allowed = "host or cuda",
       .standard = "host"},
      [](const std::string& text) -> Result<bool> {
        if (text == "host" || text == "cuda") return text == "cuda";
        return fail(Errc::bad_argument, "it is neither of these");
      });
  add_text(
      *sub, "--json", options->json_file,
      {.value = "FILE", .help = "Also write the results to this file; -: to standard output, instead of the table"});
  add_text(*sub, "--tune", options->tune_file,
           {.value = "FILE",
            .help = "Measure every path and algorithm side by side instead, and write a tuning table to this file "
                    "(TRIBUTARY_TUNING). Its entries for other collectives and numbers of ranks stay. Sizes: 4 to "
                    "16M, by a factor of 8"});
  add_text(*sub, "--id-file", options->id_file,
           {.value = "FILE",
            .help = "Ranks meet through this file, on a file system that all of them share",
            .standard = "they meet at MASTER_ADDR:MASTER_PORT"});
  add_parsed(*sub, "--require", options->require_in_network,
             {.value = "WORD",
              .help = "in-network: fail, with exit code 69, where there is no tree or no byte goes by it",
              .allowed = "in-network",
              .standard = "TRIBUTARY_REQUIRE"},
             [](const std::string& text) -> Result<bool> {
               if (text == "in-network") return true;
               return fail(Errc::bad_argument, "it is not in-network");
             });
  add_number(*sub, "--meet-limit", options->meet_seconds, 0.1, 86400,
             {.value = "SECONDS", .help = "Time within which the ranks must meet", .standard = "60"});
  sub->callback([options, sub, &action] {
    const CallShape& call = options->bench.call;
    if (!is_defined(call.op, call.dtype))
      throw service::WrongUse({.key = "--op",
                               .value = std::string(to_string(call.op)),
                               .why = "floats have no bits and no truth values",
                               .allowed = "an integer type (-d int32), or sum, prod, min, max or avg"});
    if (call.exact && (!reduces(call.collective) || !has_exact_pattern(call.dtype, call.op)))
      throw service::WrongUse({.key = "--check",
                               .value = "exact",
                               .why = "it is for sums and averages of floats",
                               .allowed = "all_reduce, reduce or reduce_scatter of a float type, with sum or avg"});
    if (!options->tune_file.empty()) {
      if (options->require_in_network)
        throw service::WrongUse({.key = "--require",
                                 .why = "it contradicts --tune, which measures every path",
                                 .allowed = "one of the two"});
      if (sub->count("--minbytes") == 0) options->bytes_min = 4;
      if (sub->count("--maxbytes") == 0) options->bytes_max = std::max<std::uint64_t>(options->bytes_min, 16U << 20);
      if (sub->count("--stepfactor") == 0 && sub->count("--stepbytes") == 0) options->factor = 8;
      if (options->bench.call.collective == PerfCollective::sendrecv)
        throw service::WrongUse({.key = "--tune",
                                 .value = options->tune_file,
                                 .why = "it contradicts sendrecv, which has only one way",
                                 .allowed = "another collective"});
    }
    if (sub->count("--minbytes") != 0 && sub->count("--maxbytes") == 0 && options->bytes_max < options->bytes_min)
      options->bytes_max = options->bytes_min;
    if (options->bytes_min > options->bytes_max) {
      throw service::WrongUse({.key = "--minbytes",
                               .value = std::to_string(options->bytes_min),
                               .why = "it contradicts --maxbytes, which is " + std::to_string(options->bytes_max),
                               .allowed = "at most --maxbytes"});
    }
    if (options->factor != 0 && options->bytes_min == 0)
      throw service::WrongUse({.key = "--minbytes",
                               .value = "0",
                               .why = "it contradicts --stepfactor, which cannot increase it",
                               .allowed = "at least 1 with --stepfactor"});
    if (options->factor == 0 && options->bytes_step == 0)
      throw service::WrongUse(
          {.key = "--stepbytes", .value = "0", .why = "no size would follow", .allowed = "at least 1"});
    action = [options] { return perf(*options); };
  });
}

}  // namespace tributary::cli
