/* SPDX-License-Identifier: Apache-2.0 */
/* The path of a policy: what kinds of file it may name, and what is said of the others. */
#include "skip.h"
#include "test_policy_support.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char directory[PATH_MAX];

static int make_directory(void **state)
{
    const char *parent = getenv("TMPDIR");

    (void)state;
    snprintf(directory, sizeof directory, "%s/policy-load-XXXXXX",
             parent != NULL && parent[0] != '\0' ? parent : "/tmp");
    return mkdtemp(directory) == NULL ? -1 : 0;
}

static int remove_directory(void **state)
{
    (void)state;
    return rmdir(directory);
}

/* A path in the directory of the test; valid until the next call. */
static const char *path_of(const char *name)
{
    static char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static void write_file(const char *path, const char *text, size_t length)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* The path is refused with one error, about the file as a whole. */
static void expect_refused(const char *path, const char *message)
{
    struct policy_diagnostics diagnostics = {0};

    assert_null(policy_load(path, &diagnostics));
    assert_int_equal(diagnostics.error_count, 1);
    assert_int_equal(diagnostics.count, 1);
    assert_string_equal(diagnostics.items[0].message, message);
    assert_int_equal(diagnostics.items[0].place.line, 0);
    assert_string_equal(diagnostics.file, path);
    policy_diagnostics_release(&diagnostics);
}

static void regular_file_is_loaded_with_its_path_and_digest(void **state)
{
    /* printf '[policy]\nversion = 1\n' | sha256sum */
    static const uint8_t digest[32] = {
        0xc1, 0x30, 0x20, 0x38, 0x92, 0x6b, 0xb6, 0x19, 0xb6, 0x67, 0x33,
        0x1a, 0x89, 0xc3, 0x3c, 0xcd, 0x9a, 0x97, 0x53, 0x98, 0x5c, 0xcb,
        0xa5, 0x35, 0x54, 0xde, 0x7b, 0x6f, 0x73, 0xbb, 0x7d, 0x9c,
    };
    const char *path = path_of("good.ini");
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    write_file(path, POLICY_HEADER, strlen(POLICY_HEADER));
    struct policy *policy = policy_load(path, &diagnostics);
    assert_non_null(policy);
    assert_string_equal(policy->path, path);
    assert_int_equal(policy->version, 1);
    assert_int_equal(policy->mode, POLICY_MODE_ENFORCE);
    assert_int_equal(policy->rule_count, 0);
    assert_memory_equal(policy->sha256, digest, 32);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    unlink(path);
}

static void symbolic_link_is_followed(void **state)
{
    char link_path[PATH_MAX + 64];
    struct policy_diagnostics diagnostics = {0};

    (void)state;
    snprintf(link_path, sizeof link_path, "%s", path_of("link.ini"));
    write_file(path_of("target.ini"), POLICY_HEADER, strlen(POLICY_HEADER));
    assert_int_equal(symlink("target.ini", link_path), 0);
    struct policy *policy = policy_load(link_path, &diagnostics);
    assert_non_null(policy);
    policy_free(policy);
    policy_diagnostics_release(&diagnostics);
    unlink(link_path);
    unlink(path_of("target.ini"));
}

static void missing_file_is_an_error(void **state)
{
    (void)state;
    expect_refused(path_of("missing.ini"), "cannot open the policy: no such file");
    expect_refused("", "cannot open the policy: no such file");
}

static void directory_is_an_error(void **state)
{
    (void)state;
    expect_refused(directory, "it is a directory, not a policy file");
}

static void device_is_an_error(void **state)
{
    (void)state;
    expect_refused("/dev/null", "it is a device, not a policy file");
    expect_refused("/dev/zero", "it is a device, not a policy file");
}

static void fifo_is_an_error_and_is_not_waited_for(void **state)
{
    const char *path = path_of("fifo");

    (void)state;
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refused(path, "it is a FIFO, not a policy file");
    unlink(path);
}

static void socket_is_an_error(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)state;
    assert_true(server >= 0);
    if (strlen(path_of("socket")) >= sizeof address.sun_path) {
        close(server);
        skip_because("the folder's name is too long for a socket");
    }
    memcpy(address.sun_path, path_of("socket"), strlen(path_of("socket")));
    assert_int_equal(bind(server, (struct sockaddr *)&address, sizeof address), 0);
    expect_refused(path_of("socket"),
                   "cannot open the policy: it is a socket or a device without a driver");
    close(server);
    unlink(path_of("socket"));
}

static void part_of_the_path_that_is_a_file_is_an_error(void **state)
{
    char path[PATH_MAX + 128];

    (void)state;
    write_file(path_of("file"), "", 0);
    snprintf(path, sizeof path, "%s/policy.ini", path_of("file"));
    expect_refused(path, "cannot open the policy: a part of the path is not a directory");
    unlink(path_of("file"));
}

static void circle_of_links_is_an_error(void **state)
{
    const char *path = path_of("circle");

    (void)state;
    assert_int_equal(symlink("circle", path), 0);
    expect_refused(path, "cannot open the policy: too many symbolic links");
    unlink(path);
}

static void long_path_is_an_error(void **state)
{
    char path[PATH_MAX + 2];

    (void)state;
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    expect_refused(path, "cannot open the policy: the name is too long");
}

static void file_without_read_permission_is_an_error(void **state)
{
    const char *path = path_of("secret.ini");
    bool root = geteuid() == 0;

    (void)state;
    write_file(path, POLICY_HEADER, strlen(POLICY_HEADER));
    assert_int_equal(chmod(path, 0), 0);
    if (root && seteuid(65534) != 0) {
        unlink(path);
        skip_because("root may read it all the same");
    }
    expect_refused(path, "cannot open the policy: permission denied");
    if (root) {
        assert_int_equal(seteuid(0), 0);
    }
    unlink(path);
}

static void huge_file_is_refused_before_it_is_read(void **state)
{
    const char *path = path_of("huge.ini");

    (void)state;
    write_file(path, "", 0);
    /* Sparse: reading it would take as long as if it were not. */
    assert_int_equal(truncate(path, (off_t)1 << 40), 0);
    expect_refused(path, "the file has 1099511627776 bytes; a policy has at most 16777216");
    assert_int_equal(truncate(path, POLICY_FILE_LIMIT + 1), 0);
    expect_refused(path, "the file has 16777217 bytes; a policy has at most 16777216");
    unlink(path);
}

static void empty_file_lacks_its_version(void **state)
{
    const char *path = path_of("empty.ini");

    (void)state;
    write_file(path, "", 0);
    expect_refused(path, "the policy does not begin with [policy] and \"version = 1\"");
    unlink(path);
}

struct writer {
    int file;
    size_t length; /* of the comment that follows the header */
};

static void *write_into_pipe(void *argument)
{
    struct writer *writer = argument;
    char comment[256];
    size_t written = 0;

    memset(comment, ';', sizeof comment);
    comment[sizeof comment - 1] = '\n';
    if (write(writer->file, POLICY_HEADER, strlen(POLICY_HEADER)) < 0) {
        return NULL;
    }
    while (written < writer->length && write(writer->file, comment, sizeof comment) > 0) {
        written += sizeof comment;
    }
    close(writer->file);
    return NULL;
}

static void load_through_pipe(size_t length, struct policy_diagnostics *diagnostics,
                              struct policy **policy)
{
    int ends[2];
    char path[64];
    pthread_t thread;

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct writer writer = {.file = ends[1], .length = length};
    assert_int_equal(pthread_create(&thread, NULL, write_into_pipe, &writer), 0);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    *policy = policy_load(path, diagnostics);
    close(ends[0]); /* a writer that is not read from gets EPIPE */
    pthread_join(thread, NULL);
}

static void pipe_of_a_shell_is_read_to_its_end(void **state)
{
    static const size_t lengths[] = {0, 1024 * 1024};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct policy_diagnostics diagnostics = {0};
        struct policy *policy;

        load_through_pipe(lengths[i], &diagnostics, &policy);
        if (policy == NULL) {
            fail_msg("%s", diagnostics_text(&diagnostics));
        }
        policy_free(policy);
        policy_diagnostics_release(&diagnostics);
    }
}

static void pipe_that_goes_on_is_refused_at_the_limit(void **state)
{
    struct policy_diagnostics diagnostics = {0};
    struct policy *policy;

    (void)state;
    load_through_pipe(POLICY_FILE_LIMIT * (size_t)2, &diagnostics, &policy);
    assert_null(policy);
    assert_int_equal(diagnostics.error_count, 1);
    assert_string_equal(diagnostics.items[0].message,
                        "the file goes on after 16777216 bytes; a policy has no more than that");
    policy_diagnostics_release(&diagnostics);
}

static int open_file_count(void)
{
    int count = 0;

    for (int file = 0; file < 256; file++) {
        count += fcntl(file, F_GETFD) >= 0;
    }
    return count;
}

static void errno_of_the_program_stays(void **state)
{
    static const char *const paths[] = {"/dev/null", "/", "/nonexistent/policy.ini"};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct policy_diagnostics diagnostics = {0};

        errno = ERANGE;
        assert_null(policy_load(paths[i], &diagnostics));
        assert_int_equal(errno, ERANGE);
        policy_diagnostics_release(&diagnostics);
    }
}

static void no_file_stays_open(void **state)
{
    int before = open_file_count();

    (void)state;
    regular_file_is_loaded_with_its_path_and_digest(state);
    missing_file_is_an_error(state);
    directory_is_an_error(state);
    device_is_an_error(state);
    fifo_is_an_error_and_is_not_waited_for(state);
    huge_file_is_refused_before_it_is_read(state);
    assert_int_equal(open_file_count(), before);
}

static void nothing_is_written_to_the_programs_streams(void **state)
{
    char path[PATH_MAX + 64];
    struct stat status;
    int saved[2], file;

    (void)state;
    snprintf(path, sizeof path, "%s", path_of("output"));
    file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        saved[i] = dup(i + 1);
        dup2(file, i + 1);
    }
    struct policy_diagnostics diagnostics = {0};
    struct policy *policy = policy_load("/dev/null", &diagnostics);
    struct policy *other = policy_parse("nonsense", 8, "test.ini", &diagnostics);
    fflush(NULL);
    for (int i = 0; i < 2; i++) {
        dup2(saved[i], i + 1);
        close(saved[i]);
    }
    assert_null(policy);
    assert_null(other);
    assert_int_equal(fstat(file, &status), 0);
    assert_int_equal(status.st_size, 0);
    close(file);
    unlink(path);
    policy_diagnostics_release(&diagnostics);
}

static void warnings_are_left_out_where_only_errors_are_asked_for(void **state)
{
    static const char shadowed[] = "[policy]\nversion = 1\n[kernel a]\nmem_sync_domain = remote\n"
                                   "[kernel b]\nmem_sync_domain = remote\n";
    struct policy_diagnostics all = {0}, errors = {.errors_only = true};

    (void)state;
    policy_free(policy_parse(shadowed, sizeof shadowed - 1, "test.ini", &all));
    assert_true(all.warning_count > 0);
    struct policy *policy = policy_parse(shadowed, sizeof shadowed - 1, "test.ini", &errors);
    assert_non_null(policy);
    assert_int_equal(errors.warning_count, 0);
    assert_int_equal(errors.count, 0);
    policy_free(policy);
    assert_null(policy_parse("[kernel x]", 10, "test.ini", &errors));
    assert_true(errors.error_count > 0);
    policy_diagnostics_release(&all);
    policy_diagnostics_release(&errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(warnings_are_left_out_where_only_errors_are_asked_for),
        cmocka_unit_test(regular_file_is_loaded_with_its_path_and_digest),
        cmocka_unit_test(symbolic_link_is_followed),
        cmocka_unit_test(missing_file_is_an_error),
        cmocka_unit_test(directory_is_an_error),
        cmocka_unit_test(device_is_an_error),
        cmocka_unit_test(fifo_is_an_error_and_is_not_waited_for),
        cmocka_unit_test(socket_is_an_error),
        cmocka_unit_test(part_of_the_path_that_is_a_file_is_an_error),
        cmocka_unit_test(circle_of_links_is_an_error),
        cmocka_unit_test(long_path_is_an_error),
        cmocka_unit_test(file_without_read_permission_is_an_error),
        cmocka_unit_test(huge_file_is_refused_before_it_is_read),
        cmocka_unit_test(empty_file_lacks_its_version),
        cmocka_unit_test(pipe_of_a_shell_is_read_to_its_end),
        cmocka_unit_test(pipe_that_goes_on_is_refused_at_the_limit),
        cmocka_unit_test(errno_of_the_program_stays),
        cmocka_unit_test(no_file_stays_open),
        cmocka_unit_test(nothing_is_written_to_the_programs_streams),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
