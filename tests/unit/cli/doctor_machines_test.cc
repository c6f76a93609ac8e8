// The doctor's findings on recorded machines, and on this machine.
#include <gmock/gmock.h>

#include "client/cli/doctor/checks.h"
#include "tests/unit/cli/recorded_machine.h"

namespace tributary::cli::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Findings findings_of(const RecordedMachine& machine) {
  return check_host({.system = machine.system(),
                     .ask_qos = machine.ask_qos(),
                     .transports = "",
                     .gpus = {.missing = {}, .driver_version = 12040, .gpus = {}}});
}

std::vector<std::string> those(const Findings& findings, Level level) {
  std::vector<std::string> names;
  for (const Finding& f : findings) {
    if (f.level == level) names.push_back(f.what);
  }
  return names;
}

const Finding& about(const Findings& findings, const std::string& what) {
  static const Finding none;
  for (const Finding& f : findings) {
    if (f.what == what) return f;
  }
  ADD_FAILURE() << "nothing is said of " << what << ":\n" << to_text(findings);
  return none;
}

/// Each bad finding says what the doctor saw, why it matters and what to do; an unknown fact says why it is unknown.
void expect_whole(const Findings& findings) {
  for (const Finding& f : findings) {
    EXPECT_FALSE(f.part.empty() || f.what.empty() || f.found.empty()) << f.part << " " << f.what;
    if (f.level == Level::good) continue;
    EXPECT_FALSE(f.mend.empty()) << f.what;
    EXPECT_EQ(f.why.empty(), f.level == Level::unknown) << f.what;
  }
}

TEST(Machines, H100HostShowsItsThreeFaultsAndNoOther) {
  const RecordedMachine machine("h100-host");
  const Findings findings = findings_of(machine);
  expect_whole(findings);
  EXPECT_THAT(those(findings, Level::bad), ElementsAre("mlx5_4 link", "ACS, GPU 0000:43:00.0 to mlx5_3"))
      << to_text(findings);
  EXPECT_THAT(those(findings, Level::warning), ElementsAre("mlx5_5 port 1 PFC")) << to_text(findings);
  EXPECT_THAT(those(findings, Level::unknown), IsEmpty()) << to_text(findings);
  EXPECT_EQ(about(findings, "ACS, GPU 0000:43:00.0 to mlx5_3").mend.substr(0, 43),
            "setpci -s 0000:3f:00.0 ECAP_ACS+6.w=0000 (u");
  EXPECT_EQ(about(findings, "mlx5_4 link").found, "32 GT/s x8 of 32 GT/s x16");
  EXPECT_THAT(about(findings, "mlx5_5 port 1 PFC").found, HasSubstr("off; RoCE has priority 3"));
  EXPECT_EQ(about(findings, "GPU 0000:df:00.0 to RDMA").found, "mlx5_11: PIX");
  EXPECT_EQ(about(findings, "GPU 0000:1b:00.0 BAR").found, "128 GiB");
  EXPECT_EQ(about(findings, "IOMMU").found, "on, passing through");
  EXPECT_EQ(about(findings, "version").found, "2.22.3 (/usr/lib/x86_64-linux-gnu/libnccl.so.2)");
  EXPECT_EQ(about(findings, "plugin").found, "NCCL would load /usr/lib/x86_64-linux-gnu/libnccl-net-tributary.so");
  EXPECT_THAT(about(findings, "NUMA placement").found, HasSubstr("RDMA devices are on 0, 1"));
}

TEST(Machines, WorkstationShowsWhatKeepsItsGpuFromTheNetwork) {
  const RecordedMachine machine("workstation");
  const Findings findings = findings_of(machine);
  expect_whole(findings);
  EXPECT_THAT(
      those(findings, Level::bad),
      testing::UnorderedElementsAre("GPU 0000:01:00.0 link", "GPU 0000:01:00.0 BAR", "ACS, GPU 0000:01:00.0 to mlx5_0",
                                    "locked memory", "peer memory", "plugin"))
      << to_text(findings);
  EXPECT_THAT(those(findings, Level::unknown), IsEmpty()) << to_text(findings);
  EXPECT_EQ(about(findings, "GPU 0000:01:00.0 BAR").found, "256 MiB, the card offers 16 GiB");
  EXPECT_EQ(about(findings, "GPU 0000:01:00.0 to RDMA").found, "mlx5_0: PHB");
  EXPECT_EQ(about(findings, "IOMMU").found, "on, translating");
  for (const char* what : {"mlx5_0 port 1 trust", "mlx5_0 port 1 traffic class", "mlx5_0 port 1 PFC",
                           "mlx5_0 port 1 ECN", "governor", "version", "nvidia-fs", "huge pages", "enp2s0"})
    EXPECT_EQ(about(findings, what).level, Level::warning) << what;
  EXPECT_EQ(about(findings, "mlx5_0 port 1 trust").found, "pcp");
}

TEST(Machines, BlueFieldIsReadyExceptForThePortWithoutACable) {
  const RecordedMachine machine("bluefield-3");
  const Findings findings = findings_of(machine);
  expect_whole(findings);
  EXPECT_THAT(those(findings, Level::bad), IsEmpty()) << to_text(findings);
  EXPECT_THAT(those(findings, Level::warning), ElementsAre("p1", "mlx5_1 port 1")) << to_text(findings);
  EXPECT_THAT(those(findings, Level::unknown), ElementsAre("governor"));
  EXPECT_EQ(about(findings, "mlx5_0 link").found, "32 GT/s x16");
  EXPECT_EQ(about(findings, "mlx5_0 port 1 ECN").found, "priority 3: answers marks on, slows down on");
}

TEST(Machines, CloudMachineHasNothingBad) {
  const RecordedMachine machine("cloud-vm");
  const Findings findings = findings_of(machine);
  expect_whole(findings);
  EXPECT_THAT(those(findings, Level::bad), IsEmpty()) << to_text(findings);
  EXPECT_THAT(those(findings, Level::warning), IsEmpty()) << to_text(findings);
  EXPECT_EQ(about(findings, "devices").found, "none: the transport verbs cannot be used");
  EXPECT_EQ(about(findings, "ens3").found, "up, MTU 1500");
}

TEST(Machines, ThisMachineIsExaminedCompletely) {
  const Findings findings = check_host({.system = transport::SystemTree(),
                                        .ask_qos = ask_kernel_for_qos,
                                        .transports = "",
                                        .gpus = {.missing = "not asked", .driver_version = 0, .gpus = {}}});
  expect_whole(findings);
  EXPECT_THAT(about(findings, "huge pages").found, HasSubstr("transparent huge pages"));
  EXPECT_NE(about(findings, "locked memory").level, Level::unknown);
}

TEST(Qos, ANameOfNoInterfaceGivesNoFinding) {
  EXPECT_FALSE(ask_kernel_for_qos(""));
  EXPECT_FALSE(ask_kernel_for_qos("no-such-name"));
  EXPECT_FALSE(ask_kernel_for_qos(std::string(300, 'x')));
  EXPECT_FALSE(ask_kernel_for_qos("lo"));
}

}  // namespace
}  // namespace tributary::cli::doctor
