"""What is read of a pipe, and while nothing comes."""

import _thread
import os
import signal
import threading

import pytest

from wirecheck.capture.source.windows import Pipe

PATIENCE_S = 15


def test_a_signal_that_came_just_before_a_pipe_is_read_ends_the_wait(tmp_path):
    """`interrupt_main` leaves what such a signal leaves: a mark for Python, and a system call that goes on."""
    os.mkfifo(tmp_path / "pipe")
    writer = os.open(tmp_path / "pipe", os.O_RDWR)
    pipe = Pipe.at(tmp_path / "pipe")
    threading.Timer(0.1, _thread.interrupt_main).start()
    late = threading.Timer(PATIENCE_S, os.write, (writer, b"in vain"))
    late.start()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            pipe.readinto(memoryview(bytearray(8)))
        assert late.is_alive()  # nothing was written
    finally:
        signal.signal(signal.SIGINT, before)
        late.cancel()
        late.join()
        pipe.close()
        os.close(writer)
