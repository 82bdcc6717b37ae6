/* SPDX-License-Identifier: Apache-2.0 */
#include "test_report_support.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>

#include "report/log.h"

static char content[1 << 20];

static const char *read_file(const char *name)
{
    FILE *stream = fopen(in_folder(name), "r");
    assert_non_null(stream);
    size_t length = fread(content, 1, sizeof content - 1, stream);
    content[length] = '\0';
    fclose(stream);
    return content;
}

static void redirect(int descriptor, const char *name)
{
    int file = open(in_folder(name), O_WRONLY | O_CREAT | O_APPEND, 0600);
    expect(file >= 0 && dup2(file, descriptor) == descriptor);
    close(file);
}

static void test_levels_are_parsed_by_value(void **state)
{
    (void)state;
    enum report_log_level level = REPORT_LOG_DEBUG;
    assert_true(report_log_level_parse("error", &level));
    assert_int_equal(level, REPORT_LOG_ERROR);
    assert_true(report_log_level_parse("warn", &level));
    assert_int_equal(level, REPORT_LOG_WARN);
    assert_true(report_log_level_parse("info", &level));
    assert_int_equal(level, REPORT_LOG_INFO);
    assert_true(report_log_level_parse("debug", &level));
    assert_int_equal(level, REPORT_LOG_DEBUG);
    assert_false(report_log_level_parse("", &level));
    assert_false(report_log_level_parse("ERROR", &level));
    assert_false(report_log_level_parse("1", &level));
    assert_int_equal(level, REPORT_LOG_DEBUG);
}

static void logs_to_stderr(void)
{
    redirect(STDERR_FILENO, "stderr");
    redirect(STDOUT_FILENO, "stdout");
    errno = ENOENT;
    report_log(REPORT_LOG_WARN, "first: %m");
    expect(errno == ENOENT);
    report_log(REPORT_LOG_INFO, "not said");
    report_log_start(REPORT_LOG_DEBUG, NULL);
    report_log(REPORT_LOG_DEBUG, "second");
    for (unsigned i = 0; i < 5; i++)
        report_log_once(REPORT_LOG_ERROR, "third");
}

static void test_messages_above_the_level_go_to_stderr_and_never_to_stdout(void **state)
{
    (void)state;
    char wanted[512];
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        logs_to_stderr();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    snprintf(wanted, sizeof wanted,
             "cudapolicy(%d): warning: first: No such file or directory\n"
             "cudapolicy(%d): debug: second\n"
             "cudapolicy(%d): error: third\n",
             (int)child, (int)child, (int)child);
    assert_string_equal(read_file("stderr"), wanted);
    assert_string_equal(read_file("stdout"), "");
}

static void logs_odd_texts(void)
{
    static char long_text[10000];
    redirect(STDERR_FILENO, "stderr");
    report_log(REPORT_LOG_WARN, "a\nb\033[31mc\td\r");
    memset(long_text, 'x', sizeof long_text - 1);
    report_log(REPORT_LOG_WARN, "%s", long_text);
}

static void test_message_is_one_line_whatever_it_quotes(void **state)
{
    (void)state;
    assert_child_succeeds(logs_odd_texts);
    const char *lines = read_file("stderr");
    assert_non_null(strstr(lines, ": warning: a?b?[31mc d?\n"));
    const char *second = strchr(lines, '\n') + 1;
    assert_non_null(strstr(second, "xxx...\n"));
    assert_true(strlen(second) <= 4096);
    assert_null(strchr(strchr(second, '\n') + 1, '\n'));
}

static void logs_to_file(void)
{
    redirect(STDERR_FILENO, "stderr");
    report_log_start(REPORT_LOG_INFO, in_folder("log"));
    report_log(REPORT_LOG_INFO, "said");
    expect(chdir("/") == 0);
    /* The program closes what it does not know, and the number gets another meaning. */
    for (int descriptor = 3; descriptor < 64; descriptor++)
        close(descriptor);
    int victim = open(in_folder("victim"), O_WRONLY | O_CREAT, 0600);
    for (int descriptor = 3; descriptor < 64; descriptor++)
        dup2(victim, descriptor);
    report_log(REPORT_LOG_INFO, "said again");
    close(63);
}

static void test_file_is_found_again_when_its_descriptor_was_taken(void **state)
{
    (void)state;
    assert_child_succeeds(logs_to_file);
    const char *lines = read_file("log");
    assert_non_null(strstr(lines, "info: said\n"));
    assert_non_null(strstr(lines, "info: said again\n"));
    assert_string_equal(read_file("victim"), "");
    assert_string_equal(read_file("stderr"), "");
    struct stat status;
    assert_int_equal(stat(in_folder("log"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
}

static void logs_without_standard_streams(void)
{
    /* The first number that open finds free is that of the standard output. */
    expect(dup2(open("/dev/null", O_RDONLY), STDIN_FILENO) == STDIN_FILENO);
    close(1);
    close(2);
    report_log_start(REPORT_LOG_WARN, in_folder("log"));
    expect(write(1, "printed", 7) < 0);
    expect(write(2, "printed", 7) < 0);
    report_log(REPORT_LOG_WARN, "said");
}

static void test_file_never_becomes_a_standard_stream(void **state)
{
    (void)state;
    assert_child_succeeds(logs_without_standard_streams);
    assert_non_null(strstr(read_file("log"), "said"));
    assert_null(strstr(read_file("log"), "printed"));
}

static void finds_names_taken(void)
{
    redirect(STDERR_FILENO, "stderr");
    redirect(9, "victim");
    expect(symlink("victim", in_folder("log")) == 0);
    expect(symlink("dangling", in_folder("log.1")) == 0);
    report_log_start(REPORT_LOG_WARN, in_folder("log"));
    report_log(REPORT_LOG_WARN, "said");
}

static void test_taken_names_and_links_get_a_suffix(void **state)
{
    (void)state;
    assert_child_succeeds(finds_names_taken);
    assert_non_null(strstr(read_file("log.2"), "said"));
    assert_string_equal(read_file("victim"), "");
    assert_false(exists("dangling"));
}

static void has_no_folder(void)
{
    redirect(STDERR_FILENO, "stderr");
    report_log_start(REPORT_LOG_WARN, in_folder("no/log"));
    report_log(REPORT_LOG_WARN, "said");
}

static void test_stderr_stays_when_the_file_cannot_be_made(void **state)
{
    (void)state;
    assert_child_succeeds(has_no_folder);
    const char *lines = read_file("stderr");
    assert_non_null(strstr(lines, "no/log cannot be made: No such file or directory"));
    assert_non_null(strstr(lines, "warning: said\n"));
}

static void has_nobody_to_read(void)
{
    int ends[2];
    sigset_t pending;
    signal(SIGPIPE, SIG_DFL);
    expect(pipe(ends) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    close(ends[0]);
    report_log(REPORT_LOG_WARN, "nobody reads this");
    sigpending(&pending);
    expect(!sigismember(&pending, SIGPIPE));
}

static void test_message_that_nobody_reads_does_not_kill(void **state)
{
    (void)state;
    int status = run_child(has_nobody_to_read);
    assert_int_equal(status, 0);
}

static void has_no_room(void)
{
    struct rlimit limit = {40, 40};
    signal(SIGXFSZ, SIG_DFL);
    redirect(STDERR_FILENO, "stderr");
    expect(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    for (unsigned i = 0; i < 10; i++)
        report_log(REPORT_LOG_WARN, "too much");
}

static void test_file_without_room_does_not_kill(void **state)
{
    (void)state;
    assert_child_succeeds(has_no_room);
}

static void *log_in_thread(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < 200; i++)
        report_log(REPORT_LOG_WARN, "0123456789 0123456789 0123456789 %03u end", i);
    return NULL;
}

static void logs_from_threads(void)
{
    pthread_t threads[16];
    report_log_start(REPORT_LOG_WARN, in_folder("log"));
    for (size_t i = 0; i < 16; i++)
        expect(pthread_create(&threads[i], NULL, log_in_thread, NULL) == 0);
    for (size_t i = 0; i < 16; i++)
        pthread_join(threads[i], NULL);
}

static void test_messages_of_threads_do_not_mix(void **state)
{
    (void)state;
    assert_child_succeeds(logs_from_threads);
    unsigned lines = 0;
    char *next = NULL;
    read_file("log");
    for (char *line = strtok_r(content, "\n", &next); line != NULL;
         line = strtok_r(NULL, "\n", &next)) {
        const char *message = strstr(line, "): warning: 0123456789 0123456789 0123456789 ");
        assert_non_null(message);
        assert_string_equal(line + strlen(line) - 4, " end");
        lines++;
    }
    assert_int_equal(lines, 16 * 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(test_##name, make_folder, remove_folder)
        TEST(levels_are_parsed_by_value),
        TEST(messages_above_the_level_go_to_stderr_and_never_to_stdout),
        TEST(message_is_one_line_whatever_it_quotes),
        TEST(file_is_found_again_when_its_descriptor_was_taken),
        TEST(file_never_becomes_a_standard_stream),
        TEST(taken_names_and_links_get_a_suffix),
        TEST(stderr_stays_when_the_file_cannot_be_made),
        TEST(message_that_nobody_reads_does_not_kill),
        TEST(file_without_room_does_not_kill),
        TEST(messages_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
