// The option of srun: correct texts become variables, and each mistake gives a sentence.
#include "packaging/slurm/options.h"

#include <gmock/gmock.h>

#include <map>
#include <string>

namespace {

using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string mistake_in(const char* text) {
  TributaryOptions options{};
  char sentence[kSentenceBytesMax] = "";
  return tributary_read_options(text, &options, sentence) == 0 ? "" : sentence;
}

std::map<std::string, std::string> variables_of(const char* text) {
  TributaryOptions options{};
  char sentence[kSentenceBytesMax] = "";
  std::map<std::string, std::string> found;
  if (tributary_read_options(text, &options, sentence) != 0) return {{"mistake", sentence}};
  for (std::size_t i = 0; i < options.count; ++i) found[options.given[i].variable] = options.given[i].value;
  return found;
}

TEST(SlurmOptions, BecomeVariables) {
  EXPECT_THAT(variables_of("lanes=2"), UnorderedElementsAre(Pair("TRIBUTARY_LANES", "2")));
  EXPECT_THAT(variables_of("lanes=auto,path=in-network,transport=udp"),
              UnorderedElementsAre(Pair("TRIBUTARY_LANES", "auto"), Pair("TRIBUTARY_PATH", "in-network"),
                                   Pair("TRIBUTARY_TRANSPORT", "udp")));
}

TEST(SlurmOptions, AnUnknownKeyIsAClearError) {
  EXPECT_EQ(mistake_in("lanes=2,priority=high"), "unknown key 'priority'; the keys are lanes, path and transport");
  EXPECT_THAT(mistake_in("Lanes=2"), HasSubstr("unknown key 'Lanes'"));
}

TEST(SlurmOptions, ABadValueIsAClearError) {
  for (const char* text :
       {"lanes=0", "lanes=17", "lanes=-1", "lanes=2x", "lanes= 2", "lanes=", "lanes=99999999999999999999"}) {
    EXPECT_THAT(mistake_in(text), HasSubstr("lanes takes auto, or a number from 1 to 16")) << text;
  }
  EXPECT_THAT(mistake_in("path=2"), HasSubstr("path takes auto, in-network or fallback"));
  EXPECT_THAT(mistake_in("transport=tcp udp"), HasSubstr("transport takes tcp, udp, verbs or dpdk"));
}

TEST(SlurmOptions, AMissingPartIsAClearError) {
  EXPECT_THAT(mistake_in("lanes"), HasSubstr("'lanes' has no value"));
  EXPECT_THAT(mistake_in(""), HasSubstr("is empty"));
  EXPECT_THAT(mistake_in(",,"), HasSubstr("is empty"));
  EXPECT_THAT(mistake_in(nullptr), HasSubstr("missing"));
  EXPECT_THAT(mistake_in(std::string(5000, 'x').c_str()), HasSubstr("longer than"));
}

TEST(SlurmOptions, AKeyIsGivenOnce) {
  EXPECT_EQ(mistake_in("lanes=2,path=auto,lanes=2"), "lanes is given twice");
}

}  // namespace
