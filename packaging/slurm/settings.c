#include "packaging/slurm/settings.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "packaging/slurm/nearest.h"
#include "packaging/slurm/options.h"

static char* trimmed(char* text) {
  text += strspn(text, " \t");
  size_t length = strcspn(text, "#\r\n");
  while (length > 0 && (text[length - 1] == ' ' || text[length - 1] == '\t')) --length;
  text[length] = '\0';
  return text;
}

static int is_time(const char* text) {
  static const char* const units[] = {"s", "min", "h", "d"};
  const size_t digits = strspn(text, "0123456789");
  for (size_t i = 0; i < sizeof units / sizeof units[0]; ++i) {
    if (digits > 0 && text[0] != '0' && strcmp(text + digits, units[i]) == 0) return 1;
  }
  return 0;
}

static char* value_of(struct TributarySettings* settings, const char* key) {
  if (strcmp(key, "manager") == 0) return settings->manager;
  if (strcmp(key, "tls_ca") == 0) return settings->tls_ca;
  if (strcmp(key, "token_file") == 0) return settings->token_file;
  if (strcmp(key, "job_directory") == 0) return settings->job_directory;
  if (strcmp(key, "job_token_life") == 0) return settings->job_token_life;
  if (strcmp(key, "command") == 0) return settings->command;
  if (strcmp(key, "reservation_max") == 0) return settings->reservation_max;
  return NULL;
}

/* A mistake, in the form of service-kit/mistake.h. `why` is NULL if there is none; `key` and `value` lie in the line. */
struct SlurmMistake {
  const char* key;
  const char* value;
  const char* why;
  const char* allowed;
  const char* nearest; /* the key that is probably meant, or NULL */
};

static struct SlurmMistake read_line(char* line, struct TributarySettings* settings) {
  static const char* const names[] = {"manager",        "tls_ca",  "token_file",     "job_directory",
                                      "job_token_life", "command", "reservation_max"};
  const struct SlurmMistake none = {NULL, NULL, NULL, NULL, NULL};
  if (*trimmed(line) == '\0') return none;
  char* equals = strchr(line, '=');
  if (equals == NULL) return (struct SlurmMistake){NULL, line, "it has another form", "lines `key = value`", NULL};
  *equals = '\0';
  const char* const key = trimmed(line);
  char* place = value_of(settings, key);
  const char* const value = trimmed(equals + 1);
  if (place == NULL)
    return (struct SlurmMistake){key, NULL, "there is no such setting",
                                 "manager, tls_ca, token_file, job_directory, job_token_life, command, reservation_max",
                                 tributary_nearest_key(key, names, sizeof names / sizeof names[0])};
  if (strlen(value) >= kSettingBytesMax)
    return (struct SlurmMistake){key, NULL, "the value is too long", "at most 255 bytes", NULL};
  const int is_path =
      place != settings->manager && place != settings->job_token_life && place != settings->reservation_max;
  if (is_path && value[0] != '/')
    return (struct SlurmMistake){key, value, "it is no whole path", "a path that begins with /", NULL};
  if (place == settings->manager && *value != '\0' && strncmp(value, "http://", 7) != 0 &&
      strncmp(value, "https://", 8) != 0)
    return (struct SlurmMistake){key, value, "it is no URL", "such as http://manager:7470 or https://manager:7470",
                                 NULL};
  if (place == settings->job_token_life && *value != '\0' && !is_time(value))
    return (struct SlurmMistake){key, value, "it is no time", "such as 7d, 12h, 90min or 300s", NULL};
  if (place == settings->reservation_max && (strlen(value) > 4 || value[strspn(value, "0123456789")] != '\0'))
    return (struct SlurmMistake){key, value, "it is no number of aggregators", "0 to 9999", NULL};
  (void)snprintf(place, kSettingBytesMax, "%s", value);
  return none;
}

static void write_mistake(const char* path, int line, const struct SlurmMistake* mistake, char* sentence) {
  const int has_key = mistake->key != NULL, has_value = mistake->value != NULL, near = mistake->nearest != NULL;
  (void)snprintf(sentence, kSentenceBytesMax, "%s:%d: %s%s%s%.200s%s%s%s%s%s (allowed: %s)", path, line,
                 has_key ? mistake->key : "", has_key ? ": " : "", has_value ? "'" : "",
                 has_value ? mistake->value : "", has_value ? "': " : "", mistake->why, near ? "; is '" : "",
                 near ? mistake->nearest : "", near ? "' meant?" : "", mistake->allowed);
}

int tributary_read_settings(const char* path, struct TributarySettings* settings, char* sentence) {
  *settings = (struct TributarySettings){.manager = "",
                                         .tls_ca = "",
                                         .token_file = "/etc/tributary/job.token",
                                         .job_directory = "/run/tributary-jobs",
                                         .job_token_life = "",
                                         .command = "/usr/bin/tributary",
                                         .reservation_max = ""};
  FILE* file = fopen(path, "re");
  if (file == NULL) {
    if (errno == ENOENT) return 0;
    (void)snprintf(sentence, kSentenceBytesMax, "%s cannot be read: %s", path, strerror(errno));
    return -1;
  }
  char line[1024];
  struct SlurmMistake mistake = {NULL, NULL, NULL, NULL, NULL};
  int number = 0;
  while (mistake.why == NULL && fgets(line, sizeof line, file) != NULL) {
    ++number;
    if (strlen(line) == sizeof line - 1) {
      mistake = (struct SlurmMistake){NULL, NULL, "the line is too long", "at most 1022 bytes", NULL};
    } else {
      mistake = read_line(line, settings);
    }
  }
  (void)fclose(file);
  if (mistake.why == NULL) return 0;
  write_mistake(path, number, &mistake, sentence);
  return -1;
}
