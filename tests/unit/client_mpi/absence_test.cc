// The calls at which ranks without a manager try again.
#include "client/plugins/mpi/absence.h"

#include <gtest/gtest.h>

#include <vector>

namespace tributary::mpi {
namespace {

/// Returns the calls at which the ranks agree, if no manager ever answers.
std::vector<std::uint32_t> agreements(std::uint32_t calls) {
  Absence absence;
  absence.note();
  std::vector<std::uint32_t> found;
  for (std::uint32_t call = 1; call <= calls; ++call) {
    if (!absence.count()) continue;
    absence.note();
    found.push_back(call);
  }
  return found;
}

TEST(Absence, TheRanksAgreeSeldomerTheLongerItLasts) {
  EXPECT_EQ(agreements(1008), (std::vector<std::uint32_t>{16, 48, 112, 240, 496, 752, 1008}));
}

TEST(Absence, ANewOneBeginsWithShortDistances) {
  Absence absence;
  EXPECT_FALSE(absence.known());
  for (int times = 0; times < 5; ++times) absence.note();
  EXPECT_TRUE(absence.known());
  absence = {};
  absence.note();
  for (std::uint32_t call = 1; call < Absence::kCallsMin; ++call) EXPECT_FALSE(absence.count());
  EXPECT_TRUE(absence.count());
}

}  // namespace
}  // namespace tributary::mpi
