#include "tests/integration/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>
#include <thread>

namespace octet {
namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("cannot make a pipe");
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close_read();
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_read() {
    if (read_end >= 0) close(read_end);
    read_end = -1;
  }
  void close_write() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

[[noreturn]] void become_octet(char* const* argv, const RunOptions& options, const Pipe& in,
                               const Pipe& out, const Pipe& err) {
  dup2(in.read_end, STDIN_FILENO);
  dup2(out.write_end, STDOUT_FILENO);
  dup2(err.write_end, STDERR_FILENO);
  if (options.output_path) {
    const int file = open(options.output_path->c_str(), O_WRONLY | O_CREAT, 0644);
    if (file < 0) _exit(126);
    dup2(file, STDOUT_FILENO);
  }
  for (const int number : {SIGPIPE, SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);
  if (options.max_file_bytes) {
    signal(SIGXFSZ, SIG_DFL);  // as a shell leaves it: the program must not die of it
    const rlimit limit{*options.max_file_bytes, *options.max_file_bytes};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  execv(argv[0], argv);
  _exit(127);
}

// Appends what is there; false at the end of the stream.
bool drain(int descriptor, std::string& text) {
  char bytes[4096];
  const ssize_t got = read(descriptor, bytes, sizeof bytes);
  if (got > 0) text.append(bytes, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

void exchange(Pipe& in, Pipe& out, Pipe& err, const std::string& input, Ran& ran) {
  size_t sent = 0;
  while (out.read_end >= 0 || err.read_end >= 0) {
    if (sent == input.size()) in.close_write();
    pollfd waits[3] = {
        {out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}, {in.write_end, POLLOUT, 0}};
    if (poll(waits, 3, -1) < 0) continue;
    if (waits[0].revents != 0 && !drain(out.read_end, ran.out)) out.close_read();
    if (waits[1].revents != 0 && !drain(err.read_end, ran.err)) err.close_read();
    if (waits[2].revents != 0) {
      const ssize_t put = write(in.write_end, input.data() + sent, input.size() - sent);
      sent = put < 0 ? input.size() : sent + static_cast<size_t>(put);
    }
  }
}

}  // namespace

const char* octet_program() {
  return OCTET_PROGRAM;
}

const char* planted_program() {
  return OCTET_PLANTED_PROGRAM;
}

const char* planted_attention_program() {
  return OCTET_PLANTED_ATTENTION_PROGRAM;
}

Ran run_octet(const std::vector<std::string>& words, const RunOptions& options) {
  std::vector<std::string> texts{options.program != nullptr ? options.program : octet_program()};
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (std::string& text : texts) argv.push_back(text.data());
  argv.push_back(nullptr);

  signal(SIGPIPE, SIG_IGN);  // a program that ends early must not end the test
  Pipe in, out, err;
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) become_octet(argv.data(), options, in, out, err);
  in.close_read();
  out.close_write();
  err.close_write();
  Ran ran;
  std::atomic<bool> ended{false};
  std::thread watcher([&] {
    while (options.when && !ended) {
      if (!options.when()) continue;
      kill(child, options.signal);
      return;
    }
  });
  exchange(in, out, err, options.input, ran);
  ended = true;
  watcher.join();  // before the child is waited for: its number is its own until then
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(wait_status)) ran.status = WEXITSTATUS(wait_status);
  if (WIFSIGNALED(wait_status)) ran.signal = WTERMSIG(wait_status);
  return ran;
}

std::string describe_run(const std::vector<std::string>& words, const Ran& ran) {
  std::string line = "octet";
  for (const std::string& word : words) line += fmt::format(" '{}'", word);
  return fmt::format("{}\n  status {}, signal {}\n  out: {}\n  err: {}", line, ran.status,
                     ran.signal, ran.out.substr(0, 2000), ran.err.substr(0, 2000));
}

}  // namespace octet
