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
  EXPECT_THAT(variables_of("priority=high"), UnorderedElementsAre(Pair("TRIBUTARY_PRIORITY", "high")));
}

TEST(SlurmOptions, AggregatorsAreOnlyForTheController) {
  TributaryOptions options{};
  char sentence[kSentenceBytesMax] = "";
  ASSERT_EQ(tributary_read_options("aggregators=4096,lanes=2", &options, sentence), 0) << sentence;
  ASSERT_EQ(options.count, 2U);
  EXPECT_STREQ(options.given[0].value, "4096");
  EXPECT_EQ(options.given[0].for_controller, 1);
  EXPECT_EQ(options.given[1].for_controller, 0);
  for (const char* text : {"aggregators=0", "aggregators=4097", "aggregators=auto"})
    EXPECT_THAT(mistake_in(text), HasSubstr("it is none of these (allowed: a number from 1 to 4096)")) << text;
}

TEST(SlurmOptions, AnUnknownKeyIsAClearError) {
  EXPECT_EQ(mistake_in("lanes=2,colour=high"),
            "colour: there is no such key (allowed: aggregators, lanes, path, priority, transport)");
  for (const char* text : {"Lanes=2", "lnaes=2", "lane=2", "laness=2"})
    EXPECT_THAT(mistake_in(text), HasSubstr(": there is no such key; is 'lanes' meant? (allowed: aggregators, lanes"))
        << text;
  EXPECT_THAT(mistake_in("tranport=2"), HasSubstr("tranport: there is no such key; is 'transport' meant?"));
  EXPECT_THAT(mistake_in((std::string(200, 'k') + "=2").c_str()), HasSubstr("k: there is no such key (allowed"));
}

TEST(SlurmOptions, ABadValueIsAClearError) {
  for (const char* text :
       {"lanes=0", "lanes=17", "lanes=-1", "lanes=2x", "lanes= 2", "lanes=", "lanes=99999999999999999999"}) {
    EXPECT_THAT(mistake_in(text), HasSubstr("': it is none of these (allowed: auto, or a number from 1 to 16)"))
        << text;
  }
  EXPECT_THAT(mistake_in("path=2"),
              HasSubstr("path: '2': it is none of these (allowed: auto, in-network or fallback)"));
  EXPECT_THAT(mistake_in("priority=urgent"),
              HasSubstr("priority: 'urgent': it is none of these (allowed: low, normal or high)"));
  EXPECT_THAT(mistake_in("transport=tcp udp"), HasSubstr("(allowed: tcp, udp, verbs or dpdk)"));
}

TEST(SlurmOptions, AMissingPartIsAClearError) {
  EXPECT_THAT(mistake_in("lanes"), HasSubstr("lanes: its value is missing (allowed: KEY=VALUE"));
  EXPECT_THAT(mistake_in(""), HasSubstr("is empty"));
  EXPECT_THAT(mistake_in(",,"), HasSubstr("is empty"));
  EXPECT_THAT(mistake_in(nullptr), HasSubstr("missing"));
  EXPECT_THAT(mistake_in(std::string(5000, 'x').c_str()), HasSubstr("too long (allowed: 1 to "));
}

TEST(SlurmOptions, AKeyIsGivenOnce) {
  EXPECT_EQ(mistake_in("lanes=2,path=auto,lanes=2"), "lanes: it is set twice (allowed: once)");
}

}  // namespace
