#pragma once
// Tables for the tests of parsing, help, completion and man pages. They resemble real commands but
// are independent of them.
#include "cli/flags.h"

namespace octet::test_tables {

inline const CommandSpec& serve() {
  static const CommandSpec spec{
      .name = "serve",
      .summary = "Answer requests",
      .positionals = {{.name = "MODEL", .help = "The checkpoint", .path = true, .flag = "model"}},
      .flags = {
          {.name = "model", .letter = 'm', .kind = FlagKind::Path, .help = "The checkpoint"},
          {.name = "port",
           .kind = FlagKind::Integer,
           .help = "TCP port",
           .default_value = "8000",
           .min = 0,
           .max = 65535},
          {.name = "trust-remote-code", .help = "Accepted"},
          {.name = "gpu-memory-utilization",
           .kind = FlagKind::Number,
           .help = "Share of memory",
           .default_value = "0.92",
           .min = 0,
           .max = 1},
          {.name = "max-num-batched-tokens", .kind = FlagKind::Size, .help = "Tokens per step"},
          {.name = "max-model-len",
           .aliases = {"ctx-size"},
           .kind = FlagKind::Size,
           .help = "Longest context",
           .choices = {"auto"},
           .min = 1},
          {.name = "enable-prefix-caching", .help = "Share prefixes", .default_value = "on"},
          {.name = "block-size", .kind = FlagKind::Integer, .help = "Tokens per block"},
          {.name = "tensor-parallel-size",
           .aliases = {"tp"},
           .kind = FlagKind::Integer,
           .help = "Ranks",
           .default_value = "1",
           .min = 1}}};
  return spec;
}

inline const CommandSpec& run() {
  static const CommandSpec spec{
      .name = "run",
      .summary = "Complete a prompt",
      .description =
          "Reads a checkpoint and continues the prompt.\n\n.A line that begins with a dot, a \\ "
          "backslash and 'quotes' stay as they are.",
      .positionals = {{.name = "MODEL", .help = "The checkpoint"}},
      .flags =
          {{.name = "prompt", .letter = 'p', .kind = FlagKind::Text, .help = "The prompt"},
           {.name = "prompt-ids", .kind = FlagKind::IntegerList, .help = "Token ids", .min = 0},
           {.name = "prefer",
            .kind = FlagKind::Text,
            .help = "Scheme",
            .choices = {"w8a8", "w8a16"}},
           {.name = "max-tokens",
            .letter = 'n',
            .aliases = {"n-predict"},
            .kind = FlagKind::Integer,
            .help = "Tokens",
            .default_value = "128",
            .min = 0},
           {.name = "max-model-len", .kind = FlagKind::Size, .help = "Context"},
           {.name = "tensor-parallel-size",
            .aliases = {"tp"},
            .kind = FlagKind::Integer,
            .help = "Ranks",
            .min = 1},
           {.name = "temperature", .kind = FlagKind::Number, .help = "Heat", .min = 0},
           {.name = "top-k",
            .kind = FlagKind::Integer,
            .help = "Candidates: [best] first, it's a count",
            .group = "Sampling"},
           {.name = "top-p",
            .kind = FlagKind::Number,
            .help = "Mass",
            .min = 0,
            .max = 1,
            .group = "Sampling"},
           {.name = "seed", .kind = FlagKind::Unsigned, .help = "Of draws", .default_value = "7"},
           {.name = "stop", .kind = FlagKind::Repeated, .help = "Stop text"},
           {.name = "disable", .kind = FlagKind::TextList, .help = "Kernels"},
           {.name = "logprobs", .kind = FlagKind::Integer, .help = "Top K", .implicit = "1"},
           {.name = "color",
            .kind = FlagKind::Text,
            .help = "Colour",
            .implicit = "always",
            .choices = {"always", "never"}},
           {.name = "json", .letter = 'j', .help = "Print JSON"},
           {.name = "chat", .help = "Apply the template | as <text> with *stars* and under_scores"},
           {.name = "save", .kind = FlagKind::Path, .help = "Where to save"}},
      .examples = {{"octet run ./model -p 'Hello' | cat", "Continue a text"},
                   {"octet run .hidden -n 5", "A path that begins with a dot"}},
      .exits = {{0, "answered"}, {4, "the disk is full"}}};
  return spec;
}

// A small program around them, with every odd case of quoting.
inline const ProgramSpec& program() {
  static const CommandSpec completion{
      .name = "completion",
      .summary = "Print a completion script: it's for a shell",
      .positionals = {{.name = "shell", .help = "The shell", .choices = {"bash", "zsh", "fish"}}}};
  static const ProgramSpec spec{.name = "octet",
                                .version = "1.2.3",
                                .summary = "FP8 inference",
                                .commands = {&run(), &serve(), &completion},
                                .examples = {{"octet run ./model -p Hi", "Answer once"}}};
  return spec;
}

}  // namespace octet::test_tables
