! A three-dimensional array to a file and back, as a Fortran programmer writes it: by element, by row, whole; formatted and
! unformatted (arsc2002, second article).  Sequential and stream access share the unformatted loops: only open differs.
module fileio_in_fortran
  use, intrinsic :: iso_c_binding, only: c_int, c_size_t, c_double, c_char
  implicit none
  private
  integer, parameter :: element = 0, row = 1, formatted = 0, sequential = 1
  character(*), parameter :: one = '(es25.16e3)', many = '(*(es25.16e3))'
contains

  subroutine write_element_formatted(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(in), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    integer :: ix, iy, iz
    do iz = 1, size(a, 3)
      do iy = 1, size(a, 2)
        do ix = 1, size(a, 1)
          write (u, one, iostat=stat, iomsg=why) a(ix,iy,iz)
          if (stat /= 0) return
        end do
      end do
    end do
  end subroutine

  subroutine write_row_formatted(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(in), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    integer :: ix, iy, iz
    do iz = 1, size(a, 3)
      do iy = 1, size(a, 2)
        write (u, many, iostat=stat, iomsg=why) (a(ix,iy,iz), ix = 1, size(a, 1))
        if (stat /= 0) return
      end do
    end do
  end subroutine

  subroutine write_whole_formatted(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(in), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    write (u, many, iostat=stat, iomsg=why) a
  end subroutine

  subroutine write_element(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(in), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    integer :: ix, iy, iz
    do iz = 1, size(a, 3)
      do iy = 1, size(a, 2)
        do ix = 1, size(a, 1)
          write (u, iostat=stat, iomsg=why) a(ix,iy,iz)
          if (stat /= 0) return
        end do
      end do
    end do
  end subroutine

  subroutine write_row(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(in), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    integer :: ix, iy, iz
    do iz = 1, size(a, 3)
      do iy = 1, size(a, 2)
        write (u, iostat=stat, iomsg=why) (a(ix,iy,iz), ix = 1, size(a, 1))
        if (stat /= 0) return
      end do
    end do
  end subroutine

  subroutine write_whole(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(in), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    write (u, iostat=stat, iomsg=why) a
  end subroutine

  ! --- the same, read ------------------------------------------------------------------------------------------

  subroutine read_element_formatted(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(inout), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    integer :: ix, iy, iz
    do iz = 1, size(a, 3)
      do iy = 1, size(a, 2)
        do ix = 1, size(a, 1)
          read (u, one, iostat=stat, iomsg=why) a(ix,iy,iz)
          if (stat /= 0) return
        end do
      end do
    end do
  end subroutine

  subroutine read_row_formatted(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(inout), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    integer :: ix, iy, iz
    do iz = 1, size(a, 3)
      do iy = 1, size(a, 2)
        read (u, many, iostat=stat, iomsg=why) (a(ix,iy,iz), ix = 1, size(a, 1))
        if (stat /= 0) return
      end do
    end do
  end subroutine

  subroutine read_whole_formatted(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(inout), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    read (u, many, iostat=stat, iomsg=why) a
  end subroutine

  subroutine read_element(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(inout), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    integer :: ix, iy, iz
    do iz = 1, size(a, 3)
      do iy = 1, size(a, 2)
        do ix = 1, size(a, 1)
          read (u, iostat=stat, iomsg=why) a(ix,iy,iz)
          if (stat /= 0) return
        end do
      end do
    end do
  end subroutine

  subroutine read_row(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(inout), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    integer :: ix, iy, iz
    do iz = 1, size(a, 3)
      do iy = 1, size(a, 2)
        read (u, iostat=stat, iomsg=why) (a(ix,iy,iz), ix = 1, size(a, 1))
        if (stat /= 0) return
      end do
    end do
  end subroutine

  subroutine read_whole(u, a, stat, why)
    integer, intent(in) :: u
    real(c_double), intent(inout), contiguous :: a(:,:,:)
    integer, intent(out) :: stat
    character(*), intent(inout) :: why
    read (u, iostat=stat, iomsg=why) a
  end subroutine

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
      if (reading /= 0) then
        call read_it()
      else
        call write_it()
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

  contains

    subroutine write_it()
      if (form == formatted) then
        select case (granularity)
        case (element)
          call write_element_formatted(u, a, stat, why)
        case (row)
          call write_row_formatted(u, a, stat, why)
        case default
          call write_whole_formatted(u, a, stat, why)
        end select
      else
        select case (granularity)
        case (element)
          call write_element(u, a, stat, why)
        case (row)
          call write_row(u, a, stat, why)
        case default
          call write_whole(u, a, stat, why)
        end select
      end if
    end subroutine write_it

    subroutine read_it()
      if (form == formatted) then
        select case (granularity)
        case (element)
          call read_element_formatted(u, a, stat, why)
        case (row)
          call read_row_formatted(u, a, stat, why)
        case default
          call read_whole_formatted(u, a, stat, why)
        end select
      else
        select case (granularity)
        case (element)
          call read_element(u, a, stat, why)
        case (row)
          call read_row(u, a, stat, why)
        case default
          call read_whole(u, a, stat, why)
        end select
      end if
    end subroutine read_it

  end function fileio_fortran

end module fileio_in_fortran
