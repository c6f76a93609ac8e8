#include "packaging/slurm/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "packaging/slurm/nearest.h"

struct Key {
  const char* name;
  const char* variable;
  const char* accepted;
  const char* const* words; /* ends with NULL */
  long most;                /* numbers from 1 to this are allowed, too; 0: no number is */
  int for_controller;
};

static const char* const kLanes[] = {"auto", NULL};
static const char* const kPaths[] = {"auto", "in-network", "fallback", NULL};
static const char* const kTransports[] = {"tcp", "udp", "verbs", "dpdk", NULL};
static const char* const kPriorities[] = {"low", "normal", "high", NULL};
static const char* const kNumbersOnly[] = {NULL};

static const struct Key kKeys[kOptionsMax] = {
    {"aggregators", "TRIBUTARY_AGGREGATORS", "a number from 1 to 4096", kNumbersOnly, 4096, 1},
    {"lanes", "TRIBUTARY_LANES", "auto, or a number from 1 to 16", kLanes, 16, 0},
    {"path", "TRIBUTARY_PATH", "auto, in-network or fallback", kPaths, 0, 0},
    {"priority", "TRIBUTARY_PRIORITY", "low, normal or high", kPriorities, 0, 0},
    {"transport", "TRIBUTARY_TRANSPORT", "tcp, udp, verbs or dpdk", kTransports, 0, 0},
};

static int is_number(const char* text, long most) {
  char* end = NULL;
  if (text[0] < '1' || text[0] > '9') return 0;
  const long number = strtol(text, &end, 10);
  return *end == '\0' && number <= most;
}

static int is_accepted(const struct Key* key, const char* value) {
  for (const char* const* word = key->words; *word != NULL; ++word) {
    if (strcmp(*word, value) == 0) return 1;
  }
  return is_number(value, key->most);
}

static const struct Key* find_key(const char* name) {
  for (size_t i = 0; i < kOptionsMax; ++i) {
    if (strcmp(kKeys[i].name, name) == 0) return &kKeys[i];
  }
  return NULL;
}

static struct TributaryOption* find_given(struct TributaryOptions* options, const char* variable) {
  for (size_t i = 0; i < options->count; ++i) {
    if (options->given[i].variable == variable) return &options->given[i];
  }
  return NULL;
}

/* Writes the sentences in the form of service-kit/mistake.h. */
static int refuse_key(const char* key, char* sentence) {
  const char* names[kOptionsMax];
  for (size_t i = 0; i < kOptionsMax; ++i) names[i] = kKeys[i].name;
  const char* const nearest = tributary_nearest_key(key, names, kOptionsMax);
  (void)snprintf(sentence, kSentenceBytesMax,
                 "%s: there is no such key%s%s%s (allowed: aggregators, lanes, path, priority, transport)", key,
                 nearest == NULL ? "" : "; is '", nearest == NULL ? "" : nearest, nearest == NULL ? "" : "' meant?");
  return -1;
}

/* Splits `pair`, which is KEY=VALUE. */
static int read_pair(char* pair, struct TributaryOptions* options, char* sentence) {
  char* value = strchr(pair, '=');
  if (value == NULL) {
    (void)snprintf(sentence, kSentenceBytesMax,
                   "%s: its value is missing (allowed: KEY=VALUE[,KEY=VALUE...], such as lanes=2)", pair);
    return -1;
  }
  *value++ = '\0';
  const struct Key* key = find_key(pair);
  if (key == NULL) return refuse_key(pair, sentence);
  if (!is_accepted(key, value)) {
    (void)snprintf(sentence, kSentenceBytesMax, "%s: '%s': it is none of these (allowed: %s)", pair, value,
                   key->accepted);
    return -1;
  }
  if (find_given(options, key->variable) != NULL) {
    (void)snprintf(sentence, kSentenceBytesMax, "%s: it is set twice (allowed: once)", pair);
    return -1;
  }
  struct TributaryOption* const option = &options->given[options->count++];
  option->variable = key->variable;
  option->for_controller = key->for_controller;
  (void)snprintf(option->value, sizeof option->value, "%s", value);
  return 0;
}

int tributary_read_options(const char* text, struct TributaryOptions* options, char* sentence) {
  char pairs[256];
  char* rest = NULL;
  options->count = 0;
  if (text == NULL || strlen(text) >= sizeof pairs) {
    (void)snprintf(sentence, kSentenceBytesMax, "the text is missing, or too long (allowed: 1 to %zu bytes)",
                   sizeof pairs - 1);
    return -1;
  }
  (void)snprintf(pairs, sizeof pairs, "%s", text);
  char* pair = strtok_r(pairs, ",", &rest);
  if (pair == NULL) {
    (void)snprintf(sentence, kSentenceBytesMax,
                   "the text is empty (allowed: KEY=VALUE[,KEY=VALUE...], such as lanes=2)");
    return -1;
  }
  for (; pair != NULL; pair = strtok_r(NULL, ",", &rest)) {
    if (read_pair(pair, options, sentence) != 0) return -1;
  }
  return 0;
}
