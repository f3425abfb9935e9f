! A three-dimensional array to a file and back, as a Fortran programmer writes it: by element, by row, whole; formatted and
! unformatted (arsc2002, second article).  Sequential and stream access share the unformatted loops: only open differs.
module fileio_in_fortran
  use, intrinsic :: iso_c_binding, only: c_int, c_size_t, c_double, c_char
  implicit none
  private
  integer, parameter :: element = 0, row = 1, formatted = 0, sequential = 1
  character(*), parameter :: one = '(es25.16e3)', many = '(*(es25.16e3))'
contains

#define UNIT_ONE u, one
#define UNIT_MANY u, many

#define TRANSFER write_formatted
#define STATEMENT write
#include "transfer.inc"

#define TRANSFER read_formatted
#define STATEMENT read
#include "transfer.inc"

#undef UNIT_ONE
#undef UNIT_MANY
#define UNIT_ONE u
#define UNIT_MANY u

#define TRANSFER write_unformatted
#define STATEMENT write
#include "transfer.inc"

#define TRANSFER read_unformatted
#define STATEMENT read
#include "transfer.inc"

  ! --- open, one of the above, close ---------------------------------------------------------------------------

  function fileio_fortran(reading, granularity, form, path, path_length, record, nx, ny, nz, a, message, message_length) &
      result(stat) bind(c)
    integer(c_int), intent(in), value :: reading, granularity, form, path_length, record, message_length
    character(kind=c_char), intent(in) :: path(path_length)
    integer(c_size_t), intent(in), value :: nx, ny, nz
    real(c_double), intent(inout) :: a(nx,ny,nz)
    character(kind=c_char), intent(inout) :: message(message_length)
    integer(c_int) :: stat
    character(path_length) :: name
    character(message_length) :: why
    character(10) :: action
    integer :: u, i, closed
    do i = 1, path_length
      name(i:i) = path(i)
    end do
    why = ''
    action = merge('read ', 'write', reading /= 0)
    if (form == formatted) then
      open (newunit=u, file=name, status='old', action=action, form='formatted', access='sequential', recl=record, &
            position='rewind', iostat=stat, iomsg=why)
    else if (form == sequential) then
      open (newunit=u, file=name, status='old', action=action, form='unformatted', access='sequential', &
            position='rewind', iostat=stat, iomsg=why)
    else
      open (newunit=u, file=name, status='old', action=action, form='unformatted', access='stream', &
            position='rewind', iostat=stat, iomsg=why)
    end if
    if (stat == 0) then
      if (form == formatted .and. reading == 0) then
        call write_formatted(u, granularity, a, stat, why)
      else if (form == formatted) then
        call read_formatted(u, granularity, a, stat, why)
      else if (reading == 0) then
        call write_unformatted(u, granularity, a, stat, why)
      else
        call read_unformatted(u, granularity, a, stat, why)
      end if
      if (stat == 0) then
        close (u, iostat=stat, iomsg=why)
      else
        close (u, iostat=closed)
      end if
    end if
    do i = 1, message_length
      message(i) = why(i:i)
    end do

  end function fileio_fortran

end module fileio_in_fortran
